"""Anything as plain data that every reader of JSON takes."""

import errno
import hashlib
import io
import math
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from medgrape.errors import UserError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path`` to write to; it takes the place of ``path`` once the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield draft
        with draft.open("rb+") as written:
            os.fsync(written.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """That a file has its name is on disk only once its folder is."""
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``folder``, which must be new or empty, once the block ends well."""
    folder = folder.resolve()  # a name such as "." has no place beside it
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already and not empty; choose another --out, or remove it first.")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        draft.mkdir(parents=True)
        yield draft
        if folder.exists():
            folder.rmdir()
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def copied(source: Path, target: Path) -> None:
    """A file, or a folder with all that is in it, once more."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def linked(source: Path, target: Path) -> None:
    """A second name for a file that nobody will change, or for all in a folder; a copy where that cannot be."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=lambda one, other: linked(Path(one), Path(other)))
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def sha256(path: Path) -> str:
    """The checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_HEADER = 128
"""Bytes kept free at the start; NumPy's header is written last, when the number of rows is known."""


class ArrayWriter:
    """A NumPy file that grows row by row. Give it a temporary name and rename it when it is whole."""

    def __init__(self, path: Path, row: tuple[int, ...], dtype: type[np.generic] = np.float32) -> None:
        self._row, self._dtype, self._rows = row, np.dtype(dtype), 0
        self._file = path.open("wb")
        self._file.write(bytes(_HEADER))

    def append(self, rows: np.ndarray) -> None:
        """The next rows along the first axis."""
        if rows.shape[1:] != self._row:
            raise ValueError(f"rows of shape {rows.shape[1:]} do not fit {self._row}")
        self._rows += len(rows)
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._file.write(self._header())
        finally:
            self._file.close()

    def _header(self) -> bytes:
        told = {
            "shape": (self._rows, *self._row),
            "fortran_order": False,
            "descr": np.lib.format.dtype_to_descr(self._dtype),
        }
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, told)
        if len(header.getvalue()) != _HEADER:
            raise ValueError(f"a header of {len(header.getvalue())} bytes does not fit into {_HEADER}")
        return header.getvalue()


def mapped(path: Path) -> np.ndarray:
    """The array in a file, read only where it is touched; an empty one has nothing to map."""
    array = np.load(path, mmap_mode="r" if path.stat().st_size > _HEADER else None)
    return np.asanyarray(array)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """All tensors into one file, taking the place of what was there."""
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with whole_file(path) as draft:
        try:
            save_file(kept, draft, metadata=metadata)
        except SafetensorError as error:  # its own word for a full disk
            raise OSError(errno.ENOSPC, f"it cannot be written ({error})", str(path)) from error
        draft.chmod(0o644)  # safetensors makes files that nobody else may read


def plain(value: object) -> Any:  # noqa: ANN401 (as JSON has it)
    """Mappings, lists, words and finite numbers; what is none of these becomes words."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _gathered(value)


def flat(value: object, name: str = "") -> dict[str, str]:
    """Nested facts as one list of names and words."""
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, inner in value.items():
            found |= flat(inner, f"{name}: {key}" if name else str(key))
        return found
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {name: "; ".join(str(plain(inner)) for inner in value)} if value else {}
    return {name: "not known" if value is None else str(plain(value))}


def _gathered(value: object) -> dict[str, Any] | list[Any] | str:
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return _gathered(value.tolist())
    if isinstance(value, (Sequence, set, frozenset)):
        return [plain(inner) for inner in value]
    return str(value)
