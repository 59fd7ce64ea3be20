"""Whoever uses the package is told its types: py.typed is part of it, and mypy --strict knows what each call gives."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import medgrape

PACKAGE = Path(medgrape.__file__).parent
SCRIPT = """
import medgrape as mg

reader = mg.load("runs/tb")
study = reader.open("film.dcm")
box = mg.Box(310, 120, 420, 260)
reveal_type(reader)
reveal_type(study)
reveal_type(study.prediction)
reveal_type(study.explain())
reveal_type(study.check(box, "active_tb"))
reveal_type(study.apply(box, "active_tb", confirmed=True))
reveal_type(reader.learn("cavity", "A hole.", examples=[("film2.png", box)]))
reveal_type(mg.__version__)


def the_same(classifier: mg.GrapeClassifier) -> mg.GrapeClassifier:
    return classifier


try:
    study.apply(box, "active_tb")
except mg.UserError as error:
    print(error)
"""
MISTAKE = """
import medgrape as mg

mg.Box("left", 1, 2, 3)
mg.load("runs/tb").opne("film.dcm")
"""


def test_the_package_is_marked_as_typed_in_the_wheel():
    import tomllib

    assert (PACKAGE / "py.typed").is_file()
    project = tomllib.loads((PACKAGE.parent.parent / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/medgrape"]
    assert "exclude" not in wheel
    assert "Typing :: Typed" in project["project"]["classifiers"]
    tracked = subprocess.run(
        ["git", "ls-files", "--error-unmatch", "src/medgrape/py.typed"], cwd=PACKAGE.parent.parent, capture_output=True,
        check=False,
    )  # fmt: skip
    assert tracked.returncode in (0, 128), "a file that git does not know is in no wheel"  # 128: no git here


def test_every_public_name_can_be_imported():
    assert [name for name in medgrape.__all__ if not hasattr(medgrape, name)] == []


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """An environment in which medgrape is installed: its files among the other packages, and nothing of our tree."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    (site,) = (folder / "env").glob("lib/python3*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", "utf-8")
    (site / "medgrape").symlink_to(PACKAGE)
    return folder


def checked(folder, script):
    (folder / "script.py").write_text(script, "utf-8")
    command = [
        sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "--no-pretty",
        "--cache-dir", str(folder / "cache"), "--config-file", "", "--python-executable",
        str(folder / "env/bin/python"), "script.py",
    ]  # fmt: skip
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={"PATH": ""})
    return result.returncode, result.stdout


@pytest.mark.slow
def test_the_mypy_of_a_user_infers_every_result_and_finds_mistakes(elsewhere):
    code, result = checked(elsewhere, SCRIPT)
    assert code == 0, result
    revealed = [line.split("Revealed type is ")[1].strip('"') for line in result.splitlines() if "Revealed" in line]
    assert revealed == [
        "medgrape.reader.Reader",
        "medgrape.study.Study",
        "typing.Mapping[str, float]",
        "medgrape.explain.explanation.Explanation",
        "medgrape.safety.check.SafetyCheck",
        "medgrape.study.Study",
        "medgrape.reader.Reader",
        "str",
    ]
    code, result = checked(elsewhere, MISTAKE)
    assert code == 1
    assert 'incompatible type "str"; expected "float"' in result
    assert '"Reader" has no attribute "opne"' in result
