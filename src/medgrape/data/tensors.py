"""Tensor files: safetensors, whole or not there, with trouble told as the operating system tells it."""

import errno
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from medgrape.data.files import whole_file


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """All tensors into one file, taking the place of what was there."""
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with whole_file(path) as draft:
        try:
            save_file(kept, draft, metadata=metadata)
        except SafetensorError as error:  # its own word for a full disk
            raise OSError(errno.ENOSPC, f"it cannot be written ({error})", str(path)) from error
        draft.chmod(0o644)  # safetensors makes files that nobody else may read
