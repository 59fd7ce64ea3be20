"""Files of annotation tools with bytes flipped, cut and doubled: read, or refused in one sentence, and nothing else."""

import json
import shutil
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.draft import finish
from medgrape.datasets.sources.annotated import TOOLS, read_folder
from medgrape.errors import UserError
from tool_exports import box, cvat, image, label_studio, rectangle, shape, task

WHOLE = {
    "coco": json.dumps({
        "categories": [{"id": 1, "name": "cavity"}],
        "images": [{"id": 1, "file_name": "film0.png", "width": 96, "height": 80}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "attributes": {"rotation": 5}}],
        "other_annotations": [{"id": 2, "image_id": 1, "category_id": 1, "bbox": None, "kind": "reject"}],
    }),
    "labelstudio": label_studio(
        task("/data/upload/1/abcd1234-film0.png", [rectangle(1, 2, 3, 4, rotation=5)], [rectangle(5, 6, 7, 8)])
    ),
    "cvat": cvat(image("film0.png", box(1, 2, 30, 40, rotation=3), shape("polygon", points="1,2;3,4;5,6"))),
}  # fmt: skip
NASTY = st.sampled_from(
    [b"", b"null", b"NaN", b"1e999", b"-1", b"[]", b"{}", b'""', b"\xff", b"<", b"&", b"\\ud800", b"\x00", b"9" * 400]
)


RARE = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def prepare(folder, file, tool):
    """What the command does, however little is left of the file."""
    out = file.with_name("out")
    with suppress(UserError):
        finish(read_folder(folder, file, tool), out, SplitRule(), allow_missing=True)
    shutil.rmtree(out, ignore_errors=True)


@pytest.mark.parametrize("tool", TOOLS)
@RARE
@given(data=st.data())
def test_a_file_with_bytes_changed_is_read_or_refused_in_one_sentence(films_folder, tmp_path, tool, data):
    content = WHOLE[tool].encode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 12)))
        content = content[:start] + data.draw(NASTY) + content[end:]
    file = tmp_path / "file"
    file.write_bytes(content)
    prepare(films_folder, file, tool)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def places(content, path=()):
    yield path
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


@pytest.mark.parametrize("tool", ["coco", "labelstudio"])
@RARE
@given(data=st.data())
def test_a_file_with_a_value_of_another_kind_is_read_or_refused_in_one_sentence(films_folder, tmp_path, tool, data):
    content = json.loads(WHOLE[tool])
    *way, last = data.draw(st.sampled_from([path for path in places(content) if path]))
    inner = content
    for key in way:
        inner = inner[key]
    inner[last] = data.draw(VALUES)
    file = tmp_path / "file"
    file.write_text(json.dumps(content), "utf-8")
    prepare(films_folder, file, tool)
