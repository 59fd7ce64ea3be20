"""Settings of servers, and what is refused in them."""

import base64

import pytest
from odd_pacs import odd_pacs

from medgrape.hospital.pacs.connection import Connection
from medgrape.hospital.pacs.servers import configured_server

GOOD = 'url = "https://pacs.example.org/dicom-web"\n'


@pytest.fixture
def complain(tmp_path, medgrape, monkeypatch):
    """Return a function that returns the error message for a table of settings."""

    def ask(table, name="hospital"):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "pacs.toml").write_text(f"[servers.hospital]\n{table}")
        code, out, complaint = medgrape("pacs", "list", name)
        assert code == 2
        assert len(complaint.strip().splitlines()) == 1
        return out + complaint

    return ask


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('ulr = "x"\n', "did you mean 'url'"),
        (GOOD + 'password = "x"\n', "did you mean 'password_"),
        (GOOD + 'token = "x"\n', "did you mean 'token_"),
        ("timeout = 3\n", "url: Field required"),
        ('url = "ftp://x/y"\n', "https://"),
        ('url = "https://"\n', "https://"),
        ('url = "https://x:y/z"\n', "not a valid address"),
        ('url = "https://pacs.example.org/?a=b"\n', "without ?"),
        ('url = "http://pacs.example.org/dicom-web"\n', "must be https"),
        (GOOD + 'username = "me"\n', "needs password_env or password_file"),
        (GOOD + 'token_env = "A"\ntoken_file = "b"\n', "set only one of"),
        (GOOD + 'token_env = "A_VARIABLE_THAT_IS_NOT_THERE"\n', "A_VARIABLE_THAT_IS_NOT_THERE is not set"),
        (GOOD + 'username = "me"\npassword_file = "none.txt"\n', "cannot be read"),
        (GOOD + 'ca_file = "none.pem"\n', "certificates cannot be used"),
        (GOOD + "page = 0\n", "page"),
    ],
)
def test_invalid_settings_are_one_sentence(table, words, complain):
    assert words in complain(table)


def test_a_password_in_the_address_is_refused_and_not_repeated(complain):
    message = complain('url = "https://me:hunter2@pacs.example.org/dicom-web"\n')
    assert "must not hold a user or password" in message
    assert "hunter2" not in message


def test_a_password_in_the_wrong_place_is_not_repeated(complain):
    assert "hunter2" not in complain('password = "hunter2"\n') + complain('pass = "hunter2"\n') + complain(
        'page = "hunter2"\n' + GOOD
    )


def test_a_server_is_called_by_its_name_and_never_by_an_address(complain):
    assert "did you mean 'hospital'" in complain(GOOD, "hospitl")
    assert "not an address" in complain(GOOD, "https://elsewhere.example.org/dicom-web")


def test_a_missing_or_empty_servers_file_is_an_error_that_says_what_to_do(tmp_path, medgrape, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "pacs.toml does not exist" in medgrape("pacs", "list", "hospital")[2]
    (tmp_path / "else.toml").write_text("[server.hospital]\n")
    monkeypatch.setenv("MEDGRAPE_PACS", "else.toml")
    assert "did you mean 'servers'" in medgrape("pacs", "list", "hospital")[2]
    (tmp_path / "else.toml").write_text("servers = {}\n")
    assert "has no server" in medgrape("pacs", "list", "hospital")[2]
    (tmp_path / "third.toml").write_text("[servers.hospital\n")
    assert "cannot be read" in medgrape("pacs", "list", "hospital", "--servers", "third.toml")[2]


def test_plain_http_needs_this_machine_or_allow_http(tmp_path):
    path = tmp_path / "pacs.toml"
    for url, more in {"http://localhost:8042/x": "", "http://[::1]/x": "", "http://a.b/x": "allow_http = true"}.items():
        path.write_text(f'[servers.hospital]\nurl = "{url}"\n{more}\n')
        assert configured_server("hospital", path).settings.url == url


def test_a_secret_file_is_read_again_for_each_request(tmp_path):
    path, token = tmp_path / "pacs.toml", tmp_path / "token"
    with odd_pacs() as pacs:
        url = pacs.server.settings.url
        path.write_text(f'[servers.hospital]\nurl = "{url}"\ntoken_file = "token"\n')
        token.write_text("a secret token\n")
        with Connection(configured_server("hospital", path)) as connection:
            connection.search(["studies"], [("limit", "1")])
            token.write_text("the next one\n")
            connection.search(["studies"], [("limit", "1")])
            assert not connection._client.follow_redirects
            assert not connection._client.trust_env
        path.write_text(f'[servers.hospital]\nurl = "{url}"\nusername = "me"\npassword_file = "token"\n')
        with Connection(configured_server("hospital", path)) as connection:
            connection.search(["studies"], [("limit", "1")])
    basic = "Basic " + base64.b64encode(b"me:the next one").decode()
    assert pacs.authorizations == ["Bearer a secret token", "Bearer the next one", basic]


@pytest.mark.parametrize("words", [("--since", "soon"), ("--since", "2026-13-01"), ("--modality", "cr/../x")])
def test_an_invalid_date_modality_or_uid_is_one_sentence(words, tmp_path, medgrape, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pacs.toml").write_text(f"[servers.hospital]\n{GOOD}")
    code, _, complaint = medgrape("pacs", "list", "hospital", *words)
    assert code == 2
    assert "--since takes" in complaint or "is not a modality" in complaint
    assert "not a study UID" in medgrape("pacs", "pull", "hospital", "../../etc/passwd")[2]
    assert "Give either UIDs of studies" in medgrape("pacs", "pull", "hospital")[2]
