"""No identifier of the patient is stored, logged or sent back."""

import io
import logging

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from sqlalchemy import inspect, text

from scenes import SECRET, planted


@pytest.fixture
def named_films(chest):
    """A film of every format whose file names its patient wherever it can, and a broken one."""
    dicom = io.BytesIO()
    planted(chest).save_as(dicom, enforce_file_format=True)
    info = PngImagePlugin.PngInfo()
    info.add_text("Patient", SECRET)
    png, jpeg = io.BytesIO(), io.BytesIO()
    picture = Image.fromarray((chest // 16).astype(np.uint8))
    picture.save(png, "PNG", pnginfo=info)
    picture.save(jpeg, "JPEG", comment=SECRET.encode())
    return {
        f"{SECRET}.dcm": dicom.getvalue(),
        f"{SECRET}.png": png.getvalue(),
        f"{SECRET}.jpg": jpeg.getvalue(),
        f"{SECRET}-broken.dcm": dicom.getvalue()[:900],
        f"{SECRET}-text.dcm": SECRET.encode() * 50,
    }


def test_no_patient_identifier_is_stored_logged_or_sent_back(room, named_films, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    answers, films = [], []
    for name, content in named_films.items():
        answers.append(room.upload("rita", content, name))
        if answers[-1].status_code == 201:
            films.append(answers[-1].json()["film"]["id"])
    assert [answer.status_code for answer in answers] == [201, 201, 201, 422, 422]
    for film in films:
        study = room.study("rita", film)
        answers += [
            room.get("rita", f"/films/{film}"),
            room.get("rita", f"/studies/{study['id']}/explanation"),
            room.get("rita", f"/films/{film}/picture.png"),
        ]
    answers += [room.get("rita", f"/films?search={SECRET}"), room.post("alma", "/log/export")]
    answers += [room.get("rita", f"/films/{SECRET}"), room.get("alma", "/metrics")]
    assert not [
        answer.request.url.path for answer in answers if _named(answer.content) and SECRET not in str(answer.url)
    ]
    assert not _named(answers[-2].content)
    ours = [
        record.getMessage() for record in caplog.records if not record.name.startswith("http")
    ]  # that is the caller
    assert len(ours) > 10
    assert not _named("\n".join(ours).encode())
    kept = [path for path in (tmp_path / "room").rglob("*") if path.is_file()]
    assert len(kept) > 6
    assert not [path for path in kept if _named(path.read_bytes()) or _named(path.name.encode())]
    assert not _named(_dump(room).encode())


def _named(content):
    return SECRET.lower().encode() in content.lower()


def _dump(room):
    with room.room.database.reading() as session:
        tables = inspect(room.room.database.engine).get_table_names()
        rows = [row for table in tables for row in session.execute(text(f"SELECT * FROM {table}"))]
    assert len(rows) > 10
    return str(rows)
