"""Commands around a server: users, tokens, the log; bad input ends with one sentence."""

import json

import pytest

from command_line import medgrape

PASSWORD = "correct horse battery\n"  # noqa: S105


@pytest.fixture
def run(tmp_path):
    def typed(*words, stdin="", where=True):
        return medgrape(*words, *(["--room", "room"] if where else []), cwd=tmp_path, stdin=stdin)

    return typed


def test_users_and_tokens_are_managed_and_the_log_records_it(run, tmp_path):
    added = run("user", "add", "ada", "--role", "curator", "--password-stdin", stdin=PASSWORD)
    assert added.returncode == 0, added.stderr
    assert run("user", "add", "pacs", "--no-password").returncode == 0
    made = run("token", "create", "--user", "pacs", "--name", "orthanc")
    token = made.stdout.strip()
    assert token.startswith("mg_")
    (listed,) = json.loads(run("token", "list", "--json").stdout)
    assert (listed["user"], listed["name"], listed["revoked"]) == ("pacs", "orthanc", False)
    assert token.split("_", 2)[2] not in run("token", "list").stdout
    assert run("token", "revoke", listed["id"]).returncode == 0
    assert json.loads(run("token", "list", "--json").stdout)[0]["revoked"]
    assert run("user", "change", "ada", "--role", "reader", "--disable").returncode == 0
    assert {one["name"]: one["disabled"] for one in json.loads(run("user", "list", "--json").stdout)} == {
        "ada": True,
        "pacs": False,
    }
    shown = json.loads(run("audit-log", "show", "--json").stdout)
    assert [one["kind"] for one in shown] == [
        "user.added", "user.added", "token.created", "token.revoked", "user.changed",
    ]  # fmt: skip
    verdict = run("audit-log", "verify")
    assert verdict.returncode == 0
    assert "nothing altered, nothing missing" in verdict.stdout
    assert run("audit-log", "export", "log.jsonl").returncode == 0
    assert run("audit-log", "verify", "log.jsonl", where=False).returncode == 0
    head = json.loads(run("audit-log", "verify", "--json").stdout)["head"]
    assert run("audit-log", "verify", "log.jsonl", "--head", head, where=False).returncode == 0
    assert run("audit-log", "verify", "log.jsonl", "--head", head[:9], where=False).returncode == 1
    log = tmp_path / "log.jsonl"
    log.write_text(log.read_text("utf-8").replace("curator", "admin", 1), "utf-8")
    altered = run("audit-log", "verify", "log.jsonl", where=False)
    assert altered.returncode == 1
    assert "event 1 was altered" in altered.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("user", "add", "Ada Lovelace", "--no-password"), "lower case"),
        (("user", "add", "ada", "--role", "king", "--no-password"), "reader, curator or admin"),
        (("user", "add", "ada"), "--password-stdin"),
        (("token", "create", "--user", "nobody"), "no user"),
        (("token", "revoke", "nothing"), "no token"),
        (("user", "change", "nobody", "--disable"), "no user"),
        (("user", "list", "--database", "mysql://x/y"), "SQLite file or PostgreSQL"),
        (("user", "list", "--database", "nonsense"), "named like"),
        (("audit-log", "verify"), "no reading room"),
        (("serve", "nowhere"), "is no run"),
        (("serve", "nowhere", "--host", "0.0.0.0"), "without login"),  # noqa: S104
        (("serve", "nowhere", "--tls-key", "k.pem"), "go together"),
        (("serve", "nowhere", "--port", "99999"), "65535"),
        (("serve", "nowhere", "--config", "none.toml"), "not there"),
    ],
)
def test_bad_input_ends_with_one_sentence(run, words, message):
    result = run(*words)
    assert (result.returncode, result.stdout) == (2, ""), result.stdout
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_weak_password_is_refused(run):
    for weak in ("short\n", "aaaaaaaaaaaaaaaa\n"):
        result = run("user", "add", "ada", "--password-stdin", stdin=weak)
        assert result.returncode == 2
        assert "password" in result.stderr


def test_a_mistyped_setting_gets_the_nearest_name(run, tmp_path):
    (tmp_path / "server.toml").write_text("prot = 1\n", "utf-8")
    result = run("serve", "nowhere", "--config", "server.toml")
    assert result.returncode == 2
    assert "port" in result.stderr
