"""A real PACS for tests: Orthanc with its DICOMweb plugin, on a free port of this machine, in a folder of its own."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAM = shutil.which("Orthanc") or "/usr/sbin/Orthanc"
PLUGINS = [*Path("/usr/share/orthanc/plugins").glob("libOrthancDicomWeb.so")]
USER, PASSWORD = "medgrape", "let me in, please"


@dataclass
class Orthanc:
    """Started, stopped and started again with the same films."""

    folder: Path
    port: int = 0
    password: str = PASSWORD
    process: subprocess.Popen | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/dicom-web"

    def start(self) -> "Orthanc":
        self.port = self.port or free_port()
        (self.folder / "store").mkdir(parents=True, exist_ok=True)
        settings = {
            "Name": "tests", "StorageDirectory": f"{self.folder}/store", "IndexDirectory": f"{self.folder}/store",
            "HttpPort": self.port, "DicomServerEnabled": False, "RemoteAccessAllowed": False,
            "AuthenticationEnabled": True, "RegisteredUsers": {USER: self.password}, "SaveJobs": False,
            "Plugins": [str(PLUGINS[0])], "DicomWeb": {"Enable": True, "Root": "/dicom-web/"},
        }  # fmt: skip
        (self.folder / "orthanc.json").write_text(json.dumps(settings))
        self.launch(self.folder / "orthanc.json")
        return self

    def launch(self, settings: Path) -> None:
        """With a file that somebody wrote."""
        with (self.folder / "orthanc.log").open("ab") as log:
            self.process = subprocess.Popen([PROGRAM, str(settings)], cwd=self.folder, stdout=log, stderr=log)
        self._wait()

    def _wait(self) -> None:
        ends_at = time.monotonic() + 60
        while time.monotonic() < ends_at:
            assert self.process.poll() is None, (self.folder / "orthanc.log").read_text()
            try:
                self.ask("GET", "/system")
            except urllib.error.URLError:
                time.sleep(0.02)
            else:
                return
        pytest.fail("Orthanc does not start")

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(30)

    def empty(self) -> None:
        for study in self.ask("GET", "/studies"):
            self.ask("DELETE", f"/studies/{study}")

    def ask(self, method: str, path: str, body: bytes | None = None):
        """Orthanc's own interface, so that tests do not see through the eyes of what they test."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, method=method)
        request.add_header("Authorization", "Basic " + base64.b64encode(f"{USER}:{self.password}".encode()).decode())
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 (our own)
            return json.loads(answer.read() or b"null")

    def receive(self, path: Path) -> str:
        """A film from a modality."""
        return self.ask("POST", "/instances", path.read_bytes())["Status"]

    def holds(self) -> list[dict]:
        """Every object, by a few of its tags."""
        found = self.ask("GET", "/instances")
        return [self.ask("GET", f"/instances/{one}/simplified-tags") for one in found]

    def servers_file(self, folder: Path, name: str = "hospital") -> Path:
        """Settings with which this PACS is reached."""
        path = folder / "pacs.toml"
        path.write_text(
            f'[servers.{name}]\nurl = "{self.url}"\nusername = "{USER}"\npassword_env = "HOSPITAL_PASSWORD"\n'
            "timeout = 20\npage = 3\n"
        )
        return path


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "HOSPITAL_PASSWORD": PASSWORD, **more}
