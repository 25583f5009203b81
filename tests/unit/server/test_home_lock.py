"""The lock of a home: one server holds it, and learns when its home is gone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.base.errors import Refused
from riseml.server.home_lock import HomeLock
from tests.support.waiting import DEADLINE


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def test_one_server_holds_the_lock_of_a_home(home: Path) -> None:
    path = home / "server.lock"
    with HomeLock(home, path) as first, HomeLock(home, path) as second:
        first.take()
        with pytest.raises(Refused, match=f"process {os.getpid()} is the server of {home} already"):
            second.take()
        assert first.is_held()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_is_lost_when_the_home_is_removed_and_made_again(home: Path) -> None:
    path = home / "server.lock"
    with HomeLock(home, path) as old:
        old.take()
        shutil.rmtree(home)
        assert not old.is_held()
        home.mkdir()
        with HomeLock(home, path) as new:
            new.take()
            assert (old.is_held(), new.is_held()) == (False, True)


def test_a_server_whose_home_is_removed_while_it_starts_is_refused(home: Path) -> None:
    with HomeLock(home, home / "server.lock") as lock:
        shutil.rmtree(home)
        with pytest.raises(Refused, match="was removed while its server started"):
            lock.take()


def test_a_removed_lock_file_lets_no_second_server_in_and_is_made_again(home: Path) -> None:
    path = home / "server.lock"
    with HomeLock(home, path) as first:
        first.take()
        path.unlink()
        with HomeLock(home, path) as second, pytest.raises(Refused, match=f"is the server of {home} already"):
            second.take()
        assert first.is_held(), "the folder is locked"
        assert path.read_text() == f"{os.getpid()}\n"
        path.unlink()
        assert first.is_held()
        with HomeLock(home, path) as third, pytest.raises(Refused, match=f"process {os.getpid()} is the server"):
            third.take()


def test_a_server_that_was_stopped_can_be_ended_by_its_lock(home: Path) -> None:
    script = "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR); fcntl.flock(f, fcntl.LOCK_EX);"
    wait = "print('locked', flush=True); sys.stdin.read()"
    with HomeLock(home, home / "server.lock") as lock:
        words = [sys.executable, "-c", script + wait, str(home / "server.lock")]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            other.send_signal(signal.SIGSTOP)
            assert not lock.try_take()
            lock.end_holder()
            assert other.wait(DEADLINE) == -signal.SIGKILL
        assert lock.try_take()
        lock.end_holder()
        assert lock.describe(), "this process is not another one"


def test_a_home_in_the_place_of_the_locked_one_is_another_home(home: Path) -> None:
    with HomeLock(home, home / "server.lock") as old:
        old.take()
        home.rename(home.with_name("renamed"))
        home.mkdir()
        assert not old.is_held()
