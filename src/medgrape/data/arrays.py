"""Arrays too large for memory: appended batch by batch to a NumPy file, read back as a map of that file.

Written with plain writes, not through a memory map: on a full disk a write is an error, a map the end of the process.
"""

from pathlib import Path
from types import TracebackType

import numpy as np


class ArrayWriter:
    """A NumPy file of known shape, filled from the front. Give it a temporary name and rename it when it is whole."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> None:
        self._shape, self._dtype, self._rows = shape, np.dtype(dtype), 0
        self._file = path.open("wb")
        header = {"shape": shape, "fortran_order": False, "descr": np.lib.format.dtype_to_descr(self._dtype)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, rows: np.ndarray) -> None:
        """The next rows along the first axis."""
        if rows.shape[1:] != self._shape[1:]:
            raise ValueError(f"rows of shape {rows.shape[1:]} do not fit {self._shape}")
        self._rows += len(rows)
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if kind is None and self._rows != self._shape[0]:
            raise ValueError(f"{self._rows} rows were written, {self._shape[0]} announced")


def mapped(path: Path) -> np.ndarray:
    """The array in a file, read only where it is touched."""
    return np.asanyarray(np.load(path, mmap_mode="r"))
