"""The Dockerfile and the compose file agree with the program, with each other, and with their linters."""

import json
import re
import shutil
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import util
from pathlib import Path
from urllib.parse import urlsplit

import compose_secrets
import pytest
import yaml
from release.containers import lint_files
from release.steps import RefusedError
from typer.main import get_command

from medgrape import __version__
from medgrape.cli.app import app
from medgrape.hospital.pacs.servers import configured_server
from medgrape.server.settings import ServerSettings, load_server_settings

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
OURS = ("server", "watch")


@pytest.fixture
def secrets(tmp_path):
    compose_secrets.write(tmp_path / "secrets")
    return tmp_path / "secrets"


@pytest.fixture
def settings(secrets):
    return load_server_settings(secrets / "serve.toml")


@pytest.fixture(scope="module")
def healthcheck():
    spec = util.spec_from_file_location("healthcheck", ROOT / "deploy/healthcheck.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environment():
    return dict(re.findall(r"^(?:ENV|   ) (\w+)=([^\s\\]+)", DOCKERFILE, re.MULTILINE))


def option(service, name):
    words = COMPOSE["services"][service]["command"]
    return words[words.index(name) + 1]


def test_the_linters_of_docker_and_compose_have_nothing_to_say():
    assert lint_files(ROOT)


@pytest.mark.parametrize(
    ("file", "was", "becomes"),
    [("Dockerfile", "USER 10001:10001", "USER root"), ("compose.yaml", "    ports:", "    prots:")],
)
def test_the_linters_refuse_a_root_user_and_a_mistyped_key(tmp_path, file, was, becomes):
    for name in ("Dockerfile", "compose.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    text = (tmp_path / file).read_text("utf-8")
    assert was in text
    (tmp_path / file).write_text(text.replace(was, becomes), "utf-8")
    with pytest.raises(RefusedError):
        lint_files(tmp_path)


@pytest.mark.parametrize("service", OURS)
def test_what_a_container_runs_is_a_command_with_these_options(service):
    command, rest = get_command(app), list(COMPOSE["services"][service]["command"])
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    assert {word for word in rest if word.startswith("--")} <= known


def test_the_room_listens_where_the_port_is_published_and_is_asked_for_its_health(settings, healthcheck):
    (published,) = COMPOSE["services"]["server"]["ports"]
    assert published.endswith(f":{settings.port}")
    assert published.startswith("${MEDGRAPE_ADDRESS:-127.0.0.1}:")
    assert f"EXPOSE {settings.port}\n" in DOCKERFILE
    assert urlsplit(healthcheck.request_for(settings.model_dump()).full_url).port == settings.port
    assert urlsplit(healthcheck.request_for({}).full_url).port == ServerSettings().port


def test_only_the_rooms_port_is_published():
    assert [name for name, one in COMPOSE["services"].items() if "ports" in one] == ["server"]


def test_a_room_in_a_container_can_be_reached_and_so_wants_users(settings):
    assert settings.is_shared


def test_the_database_knows_the_rooms_user_and_password(settings, secrets):
    url, database = urlsplit(settings.database), COMPOSE["services"]["database"]
    assert url.hostname in COMPOSE["services"]
    assert url.username == database["environment"]["POSTGRES_USER"]
    assert url.path == f"/{database['environment']['POSTGRES_DB']}"
    assert url.password == (secrets / "database_password").read_text("utf-8")
    assert database["environment"]["POSTGRES_PASSWORD_FILE"] == "/run/secrets/database_password"  # noqa: S105


def test_the_watcher_knows_orthancs_address_user_and_password(secrets):
    server = tomllib.loads((ROOT / "deploy/pacs.toml").read_text("utf-8"))["servers"]["orthanc"]
    assert urlsplit(server["url"]).hostname == "orthanc"
    assert (
        urlsplit(server["url"]).path + "/" == COMPOSE["services"]["orthanc"]["environment"]["ORTHANC__DICOM_WEB__ROOT"]
    )
    users = json.loads((secrets / "orthanc.json").read_text("utf-8"))["RegisteredUsers"]
    assert users == {server["username"]: (secrets / "orthanc_password").read_text("utf-8")}
    assert server["password_file"] == "/run/secrets/orthanc_password"  # noqa: S105


def test_the_pacs_file_is_one_that_the_program_takes():
    assert configured_server("orthanc", ROOT / "deploy/pacs.toml").settings.allow_http


def test_secrets_are_made_once_and_their_folder_is_closed_to_others(secrets):
    assert secrets.stat().st_mode & 0o077 == 0
    assert {file.name for file in secrets.iterdir()} == set(COMPOSE["secrets"])
    with pytest.raises(SystemExit, match="is not changed"):
        compose_secrets.write(secrets)


def test_every_container_gets_the_secrets_that_are_named_to_it():
    text = (ROOT / "compose.yaml").read_text("utf-8") + (ROOT / "deploy/pacs.toml").read_text("utf-8") + DOCKERFILE
    for name in re.findall(r"/run/secrets/([\w.]+)", text):
        assert name in COMPOSE["secrets"], name
    assert option("server", "--config") == "/run/secrets/serve.toml"
    assert environment()["MEDGRAPE_SETTINGS"] == option("server", "--config")


def test_nothing_is_written_but_to_volumes_and_tmp():
    volumes = set(json.loads(re.search(r"^VOLUME (.+)$", DOCKERFILE, re.MULTILINE)[1]))
    assert option("server", "--room") in volumes
    assert str(Path(option("watch", "--out")).parent) in volumes
    for service in OURS:
        one = COMPOSE["services"][service]
        assert one["read_only"]
        assert one["tmpfs"][0].startswith("/tmp:")  # noqa: S108 (in the container)
        mounted = [volume.split(":")[1] for volume in one["volumes"] if not volume.endswith(":ro")]
        assert set(mounted) <= volumes
    assert environment()["MPLCONFIGDIR"].startswith("/tmp/")  # noqa: S108


def test_the_image_is_of_this_version_and_has_extras_that_exist():
    assert f"ARG VERSION={__version__}\n" in DOCKERFILE
    assert {COMPOSE["services"][service]["image"] for service in OURS} == {f"medgrape:{__version__}"}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.search(r"^ARG EXTRAS=(.+)$", DOCKERFILE, re.MULTILINE)[1].split(",")
    assert {"server", "postgres", "pacs"} <= set(named) <= set(extras)


def test_what_the_dockerfile_copies_is_there_and_not_ignored():
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)]
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert {word for words in copied for word in words} == allowed
    assert all((ROOT / name).exists() for name in allowed)


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path == "/api/v1/health" and self.headers["Host"].split(":")[0] == self.server.called
        self.send_response(200 if known else 421)
        self.end_headers()
        self.wfile.write(b'{"status": "ok", "version": "0"}')

    def log_message(self, *_):
        pass


@pytest.fixture
def answering():
    server = HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("public", "called"), [("", "127.0.0.1"), ("https://reading.example.org", "reading.example.org")]
)
def test_the_health_check_asks_by_the_name_that_the_server_goes_by(healthcheck, answering, public, called):
    answering.called = called
    assert healthcheck.is_well({"port": answering.server_port, "public_url": public})
    answering.called = "somebody.else"
    assert not healthcheck.is_well({"port": answering.server_port, "public_url": public})


def test_a_server_that_does_not_answer_is_not_well(healthcheck, tmp_path, monkeypatch):
    file = tmp_path / "serve.toml"
    file.write_text("port = 1\n")
    monkeypatch.setenv("MEDGRAPE_SETTINGS", str(file))
    assert healthcheck.main() == 1
