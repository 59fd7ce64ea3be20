"""Files and folders that are written completely or not at all, checksums, arrays on disk, and values as plain data."""

import errno
import hashlib
import io
import json
import math
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError

from medgrape.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

LOCK = ".lock"  # in a folder that one process at a time may use


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, which replaces ``path`` atomically once the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with whole_file(path) as draft:
        draft.write_text(text, "utf-8")


def write_json(
    path: Path,
    payload: object,
    *,
    indent: int | None = None,
    allow_nan: bool = False,
    ensure_ascii: bool = True,
    end: str = "\n",
) -> None:
    """Write a JSON file atomically."""
    write_text(path, json.dumps(payload, indent=indent, allow_nan=allow_nan, ensure_ascii=ensure_ascii) + end)


def sync_folder(folder: Path) -> None:
    """Fsync the folder, so that a rename inside it is durable."""
    if os.name == "nt":  # Windows cannot open folders
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_new_folder(folder: Path) -> None:
    """Raise an error unless the folder is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} already exists and is not empty; choose another --out, or remove it first.")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``folder``, which must be new or empty, once the block succeeds."""
    folder = folder.resolve()  # "." has no sibling
    check_new_folder(folder)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        draft.mkdir(parents=True)
        yield draft
        if folder.exists():
            folder.rmdir()
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def locked_folder(
    folder: Path, busy: str, *, is_ours: Callable[[], bool] | None = None, mode: int = 0o777
) -> Iterator[None]:
    """Create the folder if it is missing, and lock it against other processes.

    Raise a ``UserError`` if the folder exists and is not ours, or, with the message ``busy``, if it is locked.
    """
    from filelock import FileLock, Timeout  # slow to import, and most commands lock no folder

    if is_ours is not None and folder.exists() and not (folder.is_dir() and is_ours()):
        raise UserError(f"{folder} already holds something else; choose another --out.")
    folder.mkdir(parents=True, exist_ok=True, mode=mode)
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        raise UserError(busy) from None


def copied(source: Path, target: Path) -> None:
    """Copy a file, or a folder with its contents."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def linked(source: Path, target: Path) -> None:
    """Hard-link a file, or all files of a folder; copy where the file system cannot link. Never change such a file."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=lambda old, new: linked(Path(old), Path(new)))
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_HEADER = 128
"""Bytes reserved for NumPy's header, which is written last, when the number of rows is known."""


class ArrayWriter:
    """Writes a NumPy file row by row. Give it a temporary path and rename the file when it is complete."""

    def __init__(self, path: Path, row: tuple[int, ...], dtype: type[np.generic] = np.float32) -> None:
        self._row, self._dtype, self._rows = row, np.dtype(dtype), 0
        self._file = path.open("wb")
        self._file.write(bytes(_HEADER))

    def append(self, rows: np.ndarray) -> None:
        """Append rows along the first axis."""
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
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"shape": (self._rows, *self._row), "fortran_order": False, "descr": descr}
        )
        if len(header.getvalue()) != _HEADER:
            raise ValueError(f"a header of {len(header.getvalue())} bytes does not fit into {_HEADER}")
        return header.getvalue()


def mapped(path: Path) -> np.ndarray:
    """Memory-map the array in a file; an empty array is loaded, as it cannot be mapped."""
    array = np.load(path, mmap_mode="r" if path.stat().st_size > _HEADER else None)
    return np.asanyarray(array)


def write_tensors(path: Path, tensors: Mapping[str, "Tensor"], metadata: dict[str, str] | None = None) -> None:
    """Write the tensors to a safetensors file atomically."""
    from safetensors.torch import save_file  # torch is slow to import, and commands such as --help do not need it

    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with whole_file(path) as draft:
        try:
            save_file(on_cpu, draft, metadata=metadata)
        except SafetensorError as error:  # safetensors raises this when the disk is full
            raise OSError(errno.ENOSPC, f"it cannot be written ({error})", str(path)) from error
        draft.chmod(0o644)  # safetensors makes files that only their owner may read


def plain(value: object) -> Any:  # noqa: ANN401 (as JSON has it)
    """Convert to JSON data: mappings, lists, strings and finite numbers. Other values become strings."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(inner) for inner in value]
    return str(value)


def flat(value: object, name: str = "") -> dict[str, str]:
    """Flatten nested mappings to one mapping of joined keys to strings."""
    if isinstance(value, Mapping):
        rows: dict[str, str] = {}
        for key, inner in value.items():
            rows |= flat(inner, f"{name}: {key}" if name else str(key))
        return rows
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {name: "; ".join(str(plain(inner)) for inner in value)} if value else {}
    return {name: "not known" if value is None else str(plain(value))}
