"""The client sends a key to https:// or loopback only, always verifies certificates, follows no redirects."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.client.contexts import NO_CONTEXTS, ServerContext, read_contexts, write_contexts
from tests.support.between import stand_between
from tests.team.team_server import Team, run_command


def test_a_user_logs_in_with_the_right_fingerprint_alone(team: Team, tmp_path: Path) -> None:
    home = tmp_path / "home"
    environ = {"RISEML_HOME": str(home)}
    key = tmp_path / "key"
    key.write_text(team.keys["paul"] + "\n")
    login = ("login", team.url, "--name", "team", "--key-file", str(key))
    wrong = run_command(environ, tmp_path, *login, "--fingerprint", "SHA256:" + "A" * 43)
    assert (wrong.code, home.exists()) == (4, False)
    assert "somebody may be between you and the server" in wrong.err
    unasked = run_command(environ, tmp_path, *login)
    assert unasked.code == 4 and f"--fingerprint {team.fingerprint}" in unasked.err
    right = run_command(environ, tmp_path, *login, "--fingerprint", team.fingerprint)
    assert right.out.startswith(f"Logged in to {team.url} as paul (member).\n"), right.err
    assert "User: paul\n" in run_command(environ, tmp_path, "whoami").out
    assert run_command(environ, tmp_path, "status").code == 0
    assert team.keys["paul"] not in run_command(environ, tmp_path, "context", "show", "--json").out
    assert run_command(environ, tmp_path, "logout").code == 0
    assert read_contexts(home / "config").find("team").key == ""
    assert run_command({**environ, "RISEML_SERVER": "team"}, tmp_path, "status").code == 4


def test_a_wrong_key_is_not_kept(team: Team, tmp_path: Path) -> None:
    environ = {"RISEML_HOME": str(tmp_path / "home")}
    (tmp_path / "key").write_text("riseml_" + "x" * 42)
    words = ("login", team.url, "--key-file", "key", "--fingerprint", team.fingerprint)
    refused = run_command(environ, tmp_path, *words)
    assert refused.code == 4 and "this key is not valid" in refused.err
    assert not (tmp_path / "home" / "config").exists()


def test_a_server_with_another_certificate_gets_nothing(team: Team, tmp_path: Path) -> None:
    environ = team.log_in("paul", tmp_path / "home")
    received: list[bytes] = []
    with stand_between(tmp_path, received) as port:
        path = tmp_path / "home" / "config"
        moved = ServerContext(
            "team", f"https://localhost:{port}", "paul", team.keys["paul"], team.fingerprint, team.authority
        )
        write_contexts(path, NO_CONTEXTS.add(moved))
        for words in (("status",), ("logs", "1"), ("kill", "1", "--force")):
            refused = run_command(environ, tmp_path, *words)
            assert refused.code == 4
            assert "is not the one that you trusted" in refused.err
            assert team.fingerprint in refused.err
    assert b"".join(received) == b""


@pytest.mark.parametrize("url", ["http://gpu1.example.org:8443", "http://192.0.2.1", "http://[2001:db8::1]:80"])
def test_a_key_is_never_sent_without_tls(team: Team, tmp_path: Path, url: str) -> None:
    (tmp_path / "key").write_text(team.keys["paul"])
    environ = {"RISEML_HOME": str(tmp_path / "home")}
    for words, more in (
        (("login", url, "--key-file", "key"), {}),
        (("status",), {"RISEML_SERVER": url, "RISEML_API_KEY": team.keys["paul"]}),
        (("--server", url, "status"), {"RISEML_API_KEY": team.keys["paul"]}),
    ):
        refused = run_command({**environ, **more}, tmp_path, *words)
        assert refused.code == 4
        assert "a key is never sent without TLS" in refused.err


@pytest.mark.parametrize(
    "words",
    [
        ("login",),
        ("login", "ftp://gpu1"),
        ("login", "https://paul:secret@gpu1"),
        ("login", "https://gpu1/path"),
        ("login", "https://gpu1:99999"),
        ("login", "https://gpu1", "--yes"),
        ("login", "https://gpu1", "--name", "local"),
        ("login", "https://gpu1", "--name", "a/b"),
        ("login", "https://gpu1", "--fingerprint", "MD5:00"),
        ("logout",),
        ("logout", "--all"),
        ("context", "remove", "local"),
        ("context", "change"),
        ("context", "use"),
        ("--server",),
        ("--server=", "status"),
        ("--server", "--json", "status"),
        ("--server", "a", "status", "--server", "b"),
        ("--server", "nobody", "status"),
    ],
)
def test_wrong_words_are_wrong_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = run_command({"RISEML_HOME": str(tmp_path / "home")}, tmp_path, *words)
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err and "riseml itself failed" not in ended.err
