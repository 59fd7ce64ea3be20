"""What a backbone made of a film, on disk, so that no other worker and no restart makes it again."""

import hashlib
import os
import threading
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.model.checkpoint import Run


def encoder_version(run: Run) -> str:
    """One name for all models that encode alike: the same backbone, projector and preparation of films.

    A model that was taught a finding, or curated, encodes like the one it came from, and so shares what was encoded.
    """
    found = hashlib.sha256(run.config.preprocessing.model_dump_json().encode())
    found.update(repr((run.model.mirror, run.model.backbone.describe(), run.config.model.smooth)).encode())
    for part in (run.model.backbone, run.model.projector):
        for name, tensor in sorted(part.state_dict().items()):
            found.update(name.encode())
            found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


class FeatureStore:
    """A file for each film and encoder. The first one written stays: what was answered from it stays true."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, encoder: str, film: str) -> Float[Tensor, "d h w"] | None:
        """What is there; None where nothing is, or nothing whole."""
        try:
            found = np.load(self._path(encoder, film), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return torch.from_numpy(found) if found.ndim == 3 and found.dtype == np.float32 else None

    def put(self, encoder: str, film: str, patches: Float[Tensor, "d h w"]) -> Float[Tensor, "d h w"]:
        """Keep it, unless somebody was faster; what is kept is handed back."""
        path = self._path(encoder, film)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            with draft.open("wb") as file:
                np.save(file, patches.numpy(), allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            if self.get(encoder, film) is None:  # one that is not whole is replaced
                path.unlink(missing_ok=True)
            os.link(draft, path)
        except FileExistsError:
            kept = self.get(encoder, film)
            return patches if kept is None else kept
        finally:
            draft.unlink(missing_ok=True)
        return patches

    def drop(self, film: str) -> None:
        """Forget a film."""
        for path in self._folder.glob(f"*/{film[:2]}/{film}.npy"):
            path.unlink(missing_ok=True)

    def _path(self, encoder: str, film: str) -> Path:
        return self._folder / encoder / film[:2] / f"{film}.npy"
