import numpy as np
import pytest

from medgrape.files import ArrayWriter, mapped


@pytest.mark.parametrize("batches", [(), (3,), (2, 5, 1)])
def test_appended_rows_are_read_back_from_disk(batches, tmp_path):
    rows = np.random.default_rng(0).random((sum(batches), 4, 2)).astype(np.float32)
    with ArrayWriter(tmp_path / "a.npy", (4, 2)) as out:
        done = 0
        for count in batches:
            out.append(rows[done : done + count])
            done += count
    np.testing.assert_array_equal(mapped(tmp_path / "a.npy"), rows)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), rows)


def test_rows_of_another_shape_are_refused(tmp_path):
    with ArrayWriter(tmp_path / "a.npy", (4,)) as out, pytest.raises(ValueError, match="do not fit"):
        out.append(np.zeros((2, 5)))


def test_an_unfinished_file_is_not_an_array(tmp_path):
    writer = ArrayWriter(tmp_path / "a.npy", (4,))
    writer.append(np.zeros((2, 4)))
    writer.__exit__(KeyError, KeyError(), None)
    with pytest.raises(ValueError):  # noqa: PT011 (NumPy's own words)
        np.load(tmp_path / "a.npy")
