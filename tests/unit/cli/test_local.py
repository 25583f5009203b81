"""Starting, finding and replacing the user's own server, without one."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from riseml import __version__
from riseml.cli import local
from riseml.cli.local import Child, Order, Starter, compare_versions, connect, ensure, spawn
from riseml.cli.output.printer import Render
from riseml.client import Address, Client
from riseml.errors import Refused, Unreachable
from riseml.settings import Settings, read_settings
from tests.unit.cli.door import Door


@dataclass
class Fake:
    """A child that ends with these codes, one a look; None: it still runs."""

    codes: list[int | None]

    def wait(self, timeout: float) -> int:
        code = self.codes.pop(0) if self.codes else None
        if code is None:
            raise subprocess.TimeoutExpired("server", timeout)
        return code


def _settings(home: Path) -> Settings:
    return Settings(home, home / "output", home / "data")


def _starter(*children: Fake, ticks: Iterator[float] | None = None) -> Starter:
    left = iter(children)
    moments = ticks or iter(float(number) for number in range(10_000))

    def start(settings: Settings, command: Sequence[str]) -> Child:
        return next(left)

    return Starter(start, (), 15.0, lambda: next(moments), lambda _: None)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9.0", "2.0.0"),
        ("2.0.0.dev0", "2.0.0"),
        ("2.0.0.dev0", "2.0.0.dev1"),
        ("2.0.0.dev9", "2.0.0a1"),
        ("2.0.0a1", "2.0.0b1"),
        ("2.0.0b2", "2.0.0rc1"),
        ("2.0.0rc1", "2.0.0rc2"),
        ("2.0.0rc1.dev1", "2.0.0rc1"),
        ("2.0.0rc9", "2.0.0"),
        ("2.0.0", "2.0.0.post1"),
        ("2.0.0.post1", "2.0.1.dev0"),
        ("2.9", "2.10"),
        ("unknown", "0.1"),
    ],
)
def test_versions_have_an_order(older: str, newer: str) -> None:
    assert compare_versions(older, newer) is Order.OLDER
    assert compare_versions(newer, older) is Order.NEWER


@pytest.mark.parametrize(("one", "other"), [("2.0", "2.0.0"), ("v2.0.0", "2.0.0"), ("2.0.0", "2.0.0+local")])
def test_versions_may_be_the_same(one: str, other: str) -> None:
    assert compare_versions(one, other) is Order.SAME


def test_a_server_that_answers_is_used(door: Door) -> None:
    with Client(Address(door.home / "server.sock")) as client:
        assert ensure(client, _settings(door.home), _starter())["pid"] == 7


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("error: old trouble\n")
    starter = _starter(Fake([None, 5]))

    def start(settings: Settings, command: Sequence[str]) -> Child:
        with settings.log.open("a") as log:
            log.write('Traceback (most recent call last):\n  File "x.py", line 1\nerror: the store is broken\nlast\n')
        return starter.spawn(settings, command)

    telling = Starter(start, (), 15.0, starter.clock, starter.wait)
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable) as raised:
        ensure(client, _settings(tmp_path), telling)
    assert raised.value.message == "the riseml server did not start: the store is broken"
    assert "server.log" in (raised.value.hint or "")


def test_all_problems_that_kept_a_server_from_starting_are_told(tmp_path: Path) -> None:
    starter = _starter(Fake([None, 2]))

    def start(settings: Settings, command: Sequence[str]) -> Child:
        settings.log.write_text("error: pool.yml has 2 problems\n  pool.yml:1:1 hosts: one\n  pool.yml:2:1 x: two\n")
        return starter.spawn(settings, command)

    telling = Starter(start, (), 15.0, starter.clock, starter.wait)
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable) as raised:
        ensure(client, _settings(tmp_path), telling)
    assert raised.value.message.splitlines()[1:] == ["pool.yml:1:1 hosts: one", "pool.yml:2:1 x: two"]


def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable, match="within 15 s"):
        ensure(client, _settings(tmp_path), _starter(Fake([])))


def test_a_second_server_that_ends_quietly_is_no_failure(door: Door) -> None:
    """Two commands at once: the other one's server comes to answer while ours has ended."""
    left = door.home / "server.sock"
    hidden = left.rename(door.home / "hidden.sock")
    children = [Fake([0]), Fake([None])]

    def start(settings: Settings, command: Sequence[str]) -> Child:
        if len(children) == 1:
            hidden.rename(left)
        return children.pop(0)

    moments = iter(float(number) for number in range(100))
    try:
        with Client(Address(left)) as client:
            starter = Starter(start, (), 15.0, lambda: next(moments), lambda _: None)
            assert ensure(client, _settings(door.home), starter)["pid"] == 7
    finally:
        if hidden.exists():
            hidden.rename(left)
    assert not children


def test_a_home_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot use"):
        spawn(_settings(tmp_path / "file" / "home"), ())


def test_a_started_process_is_its_own_session_and_writes_to_the_log(tmp_path: Path) -> None:
    program = "import os, sys; print(os.getsid(0) == os.getpid(), os.getcwd(), sys.stdin.read() == '')"
    child = spawn(_settings(tmp_path), (sys.executable, "-c", program))
    assert child.wait(60) == 0
    assert (tmp_path / "server.log").read_text() == "True / True\n"


def _connect(door: Door, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> str:
    def stop(client: Client, settings: Settings) -> None:
        door.asked.append("stopped")
        door.server |= {"version": __version__, "pid": 8}

    monkeypatch.setattr(local, "stop", stop)
    render = Render(io.StringIO(), io.StringIO())
    connect(_settings(door.home), environ, render).close()
    assert isinstance(render.err, io.StringIO)
    return render.err.getvalue()


def test_an_older_server_is_replaced_and_that_is_said(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.server["version"] = "1.9.0"
    said = _connect(door, monkeypatch, {})
    assert said == f"Replaced the riseml server 1.9.0 by {__version__}; training goes on.\n"
    assert "stopped" in door.asked


def test_a_newer_server_is_left_alone_with_a_warning(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.server["version"] = "99.0"
    assert "pip install --upgrade riseml" in _connect(door, monkeypatch, {})
    assert "stopped" not in door.asked


def test_another_engine_is_worth_a_warning(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    said = _connect(door, monkeypatch, {"DOCKER_HOST": "tcp://other:2375"})
    assert "unix:///var/run/docker.sock" in said
    assert "riseml server stop" in said
    assert _connect(door, monkeypatch, {"DOCKER_HOST": "unix:///var/run/docker.sock"}) == ""


def test_a_server_of_a_team_is_neither_started_nor_replaced(tmp_path: Path) -> None:
    client = connect(_settings(tmp_path), {"RISEML_SERVER": "http://127.0.0.1:1"}, Render(io.StringIO(), io.StringIO()))
    with client, pytest.raises(Unreachable, match="no riseml server answers"):
        client.server()


def test_a_server_finds_folders_that_were_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = read_settings({"RISEML_HOME": "my home", "RISEML_OUTPUT": "out"})
    names = "RISEML_HOME", "RISEML_OUTPUT", "RISEML_DATA"
    program = f"import os; print([os.environ[name] for name in {names}])"
    assert spawn(settings, (sys.executable, "-c", program)).wait(30) == 0
    assert settings.log.read_text().strip() == str(
        [str(tmp_path / "my home"), str(tmp_path / "out"), str(tmp_path / "my home" / "data")]
    )


def test_a_home_that_is_a_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="it is no folder"):
        spawn(_settings(tmp_path / "file"), ())
