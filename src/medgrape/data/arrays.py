"""Arrays too large for memory: appended batch by batch to a NumPy file, read back as a map of that file.

Written with plain writes, not through a memory map: on a full disk a write is an error, a map the end of the process.
"""

import io
from pathlib import Path
from types import TracebackType

import numpy as np

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
