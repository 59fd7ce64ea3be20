"""Random uploads are stored or refused, and memory is bounded."""

import io
import random

import numpy as np
import psutil
from PIL import Image
from pydicom.uid import JPEG2000Lossless, JPEGLSLossless, RLELossless
from reading_room import reading_room

from scenes import radiograph

UPLOADS = 500
SEED = 7
GROWTH = 0.10
"""Most that memory may grow between the first fifth of the uploads and the last."""


def originals(chest):
    small = chest[::2, ::2].copy()
    found = []
    for syntax in (None, RLELossless, JPEG2000Lossless, JPEGLSLossless):
        dataset = radiograph(small, WindowCenter=2000, WindowWidth=900, PatientOrientation=["L", "F"])
        if syntax is not None:
            dataset.compress(syntax)
        out = io.BytesIO()
        dataset.save_as(out, enforce_file_format=True)
        found.append(out.getvalue())
    for picture, form in ((Image.fromarray((small // 16).astype(np.uint8)), "PNG"), (Image.fromarray(small), "PNG"),
                          (Image.fromarray((small // 16).astype(np.uint8)), "JPEG")):  # fmt: skip
        out = io.BytesIO()
        picture.save(out, form)
        found.append(out.getvalue())
    return found


def mutated(content, chance):
    """A few bytes changed, cut off, doubled or swapped; more often near the start, where headers are."""
    bytes_ = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        place = int(len(bytes_) * chance.random() ** 3)
        deed = chance.randrange(5)
        if deed == 0:
            bytes_[place : place + 1] = bytes([chance.randrange(256)])
        elif deed == 1:
            bytes_[place : place + 4] = chance.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"))
        elif deed == 2:
            del bytes_[place : place + chance.randrange(1, 64)]
        elif deed == 3:
            bytes_[place:place] = bytes_[place : place + chance.randrange(1, 64)]
        else:
            del bytes_[max(place, 200) :]
    return bytes(bytes_)


def memory(room):
    processes = [psutil.Process(), *(psutil.Process(pid) for pid in room.room.decoder_pool.process_ids())]
    return sum(process.memory_info().rss for process in processes)


def test_five_hundred_mutated_uploads_are_stored_or_refused_and_memory_is_bounded(tmp_path, strict_run, chest):
    chance, kinds, statuses = random.Random(SEED), originals(chest), []  # noqa: S311
    with reading_room(tmp_path / "room", strict_run, films={"max_pixels": 4_000_000}) as room:
        for number in range(UPLOADS):
            content = mutated(chance.choice(kinds), chance)
            statuses.append(room.upload("rita", content).status_code)
            if number == UPLOADS // 5:
                early = memory(room)
        late = memory(room)
        assert set(statuses) <= {200, 201, 422}
        assert min(statuses.count(201), statuses.count(422)) > UPLOADS // 20
        assert late < early * (1 + GROWTH), f"{early / 2**20:.0f} MiB became {late / 2**20:.0f}"
        assert room.study()["revision"] == 0
        assert list(room.room.folder.uploads.iterdir()) == []
