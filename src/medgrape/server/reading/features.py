"""What a backbone made of a film, on disk, so that no other worker and no restart makes it again."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Float
from torch import Tensor

from medgrape.data.files import whole_file
from medgrape.model.checkpoint import Run

PATIENCE = 120.0
"""Seconds that somebody waits for a film that somebody else encodes."""


def encoder_version(run: Run) -> str:
    """One name for all models that encode alike: the same backbone, projector and preparation of films.

    A model that was taught a finding, or curated, encodes like the one it came from, and so shares what was encoded.
    """
    found = hashlib.sha256(run.config.preprocessing.model_dump_json().encode())
    found.update(repr((run.grape.mirror, run.grape.backbone.describe(), run.config.model.smooth)).encode())
    for part in (run.grape.backbone, run.grape.projector):
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

    def made_once(self, encoder: str, film: str, make: Callable[[], Float[Tensor, "d h w"]]) -> Float[Tensor, "d h w"]:
        """What is kept, or else what ``make`` makes; whoever asks meanwhile, in any worker, waits for it."""
        found = self.get(encoder, film)
        if found is not None:
            return found
        path = self._path(encoder, film)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=PATIENCE, poll_interval=0.01):
            found = self.get(encoder, film)
            return self._put(path, make()) if found is None else found

    def drop(self, film: str) -> None:
        """Forget a film."""
        for path in self._folder.glob(f"*/{film[:2]}/{film}.*"):
            path.unlink(missing_ok=True)

    def _put(self, path: Path, patches: Float[Tensor, "d h w"]) -> Float[Tensor, "d h w"]:
        with whole_file(path) as draft, draft.open("wb") as file:
            np.save(file, patches.numpy(), allow_pickle=False)
        return patches

    def _path(self, encoder: str, film: str) -> Path:
        return self._folder / encoder / film[:2] / f"{film}.npy"
