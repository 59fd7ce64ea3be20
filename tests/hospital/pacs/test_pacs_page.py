"""docs/how-to/pacs.md, typed from top to bottom against the Orthanc that it describes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from orthanc import PLUGINS, PROGRAM, Orthanc, free_port
from pydantic_core import PydanticUndefined
from ward_films import uid_of

from medgrape.hospital.pacs.servers import ServerSettings

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/how-to/pacs.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_setting_of_a_server_is_documented_with_its_default_and_no_other():
    documented = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    known = {
        name: "none: it must be given" if field.default is PydanticUndefined else json.dumps(field.default)
        for name, field in ServerSettings.model_fields.items()
    }
    assert documented == known


@pytest.fixture
def as_described(tmp_path):
    """An Orthanc with the page's configuration, but for its port."""
    if not (shutil.which(PROGRAM) and PLUGINS) and not os.environ.get("CI"):
        pytest.skip("Orthanc is missing: apt install orthanc orthanc-dicomweb")
    (described,) = blocks("json")
    (servers,) = blocks("toml")
    port = free_port()
    (tmp_path / "orthanc.json").write_text(described.replace("8042", str(port)))
    (tmp_path / "pacs.toml").write_text(servers.replace("8042", str(port)))
    orthanc = Orthanc(tmp_path, port, password=json.loads(described)["RegisteredUsers"]["medgrape"])
    orthanc.launch(tmp_path / "orthanc.json")
    yield orthanc
    orthanc.stop()


@pytest.mark.slow
def test_the_page_runs_as_it_is_written(as_described, cabinet, trained_run, tmp_path):
    film = cabinet.film(0).rename(tmp_path / "chest.dcm")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/tb").symlink_to(trained_run)
    (tmp_path / "medgrape").write_text(f'#!/bin/sh\nexec {sys.executable} -m medgrape "$@"\n')
    (tmp_path / "medgrape").chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    typed = "\n".join(["set -e", *blocks("bash")[1:], f"python - <<'END'\n{blocks('python')[0]}END"])
    places = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        ["bash", "-c", typed], cwd=tmp_path, capture_output=True, text=True, env=os.environ | places, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "accepted: chest.dcm" in ended.stdout
    assert f"stored: {uid_of(film)}" in ended.stdout
    assert ended.stdout.strip().splitlines()[-1].startswith(uid_of(film))
    assert len(list((tmp_path / "from-hospital").rglob("*.dcm"))) == 1
    assert len(list((tmp_path / "without-names").iterdir())) == 1
    kinds = {one["Modality"] for one in as_described.holds()}
    assert {"CR", "SR"} <= kinds
