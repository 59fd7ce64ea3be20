"""A shared PACS, and films to put into it."""

import os
import shutil
import signal
import sys

import pytest
from orthanc import PASSWORD, PLUGINS, PROGRAM, Orthanc
from ward_films import FilmCabinet

from medgrape.cli.app import main
from medgrape.hospital.pacs.servers import configured_server
from medgrape.hospital.pacs.watch import WatchOptions


@pytest.fixture(scope="session")
def running_orthanc(tmp_path_factory):
    """Orthanc. Without it, tests that need it are skipped, but never in CI."""
    if not (shutil.which(PROGRAM) and PLUGINS) and not os.environ.get("CI"):
        pytest.skip("Orthanc is missing: apt install orthanc orthanc-dicomweb")
    orthanc = Orthanc(tmp_path_factory.mktemp("orthanc")).start()
    yield orthanc
    orthanc.stop()


@pytest.fixture
def orthanc(running_orthanc, tmp_path, monkeypatch):
    """An empty PACS called hospital in the pacs.toml of the current folder."""
    running_orthanc.empty()
    running_orthanc.servers_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSPITAL_PASSWORD", PASSWORD)
    return running_orthanc


@pytest.fixture
def hospital(orthanc):  # noqa: ARG001 (its settings lie here)
    """Its settings."""
    return configured_server("hospital")


@pytest.fixture
def options(hospital, trained_run, tmp_path):
    return WatchOptions(hospital, trained_run, tmp_path / "out", since="always", once=True)


@pytest.fixture
def cabinet(drawn_dataset, tmp_path):
    return FilmCabinet(drawn_dataset, tmp_path / "cabinet")


@pytest.fixture
def medgrape(monkeypatch, capsys):
    """Run a command in this process; return its exit code, output and error output."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["medgrape", *map(str, words)])
        before = signal.getsignal(signal.SIGTERM)
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            signal.signal(signal.SIGTERM, before)
        output = capsys.readouterr()
        return code, output.out, output.err

    return run
