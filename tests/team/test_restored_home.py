"""The backup of a team's home, restored in its place: users, keys, certificate and audit log are those of before."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.team.team_server import Team, open_team, run_command

PRIVATE = ("server.yml", "accounts.key", "audit.log", "authority/authority.pem", "authority/authority.key")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="riseml-team-"))  # short: the path of a unix socket is
    yield path
    shutil.rmtree(path, ignore_errors=True)


def run_at_home(team: Team, folder: Path, *words: str) -> str:
    outcome = run_command(team.environ, folder, *words)
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_a_restored_team_goes_on_with_its_keys_and_its_certificate(short_folder: Path, tmp_path: Path) -> None:
    with open_team(short_folder / "home") as team:
        backup = tmp_path / "team.tar"
        run_at_home(team, tmp_path, "server", "backup", str(backup))
        with tarfile.open(backup) as tar:
            assert set(PRIVATE) <= set(tar.getnames())
        assert backup.stat().st_mode & 0o777 == 0o600
        team.stop()
        team.home.rename(short_folder / "former")
        run_at_home(team, tmp_path, "server", "restore", str(backup))
        private = [team.home, *(path for path in team.home.rglob("*") if path.is_file())]
        assert {path.stat().st_mode & 0o077 for path in private} == {0}
        team.start()  # with the pinned authority of before
        with team.open_client("paul") as client:
            assert client.get_server()["id"]
        login = team.log_in("alice", tmp_path / "of-alice")
        assert run_command(login, tmp_path, "audit", "verify").out.startswith("The audit log is whole")
        assert "POST /v1/users" in run_command(login, tmp_path, "audit").out, "from before the backup"
