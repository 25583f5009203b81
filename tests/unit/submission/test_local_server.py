"""The user's own server is found, started and replaced. No real server runs here."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from riseml import __version__
from riseml.base import wire_revision
from riseml.base.errors import Refused, StoreError, Unreachable
from riseml.base.settings import Settings, read_settings
from riseml.cli.output.printer import Printer
from riseml.client import socket_http
from riseml.client.contexts import LOCAL, Contexts, ServerContext, write_contexts
from riseml.client.server_client import Address, Client
from riseml.submission import local_server
from riseml.submission.local_server import VersionComparison, compare_versions, connect_client, ensure_server
from riseml.submission.server_process import ServerProcess, ServerStarter
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.homes import make_settings


@dataclass
class FakeProcess:
    """A process that ends with these codes, one for each wait; None: it still runs."""

    codes: list[int | None]
    pid: int = 6
    terminated: bool = False

    def terminate(self) -> None:
        self.terminated = True

    def wait(self, timeout: float) -> int:
        code = self.codes.pop(0) if self.codes else None
        if code is None:
            raise subprocess.TimeoutExpired("server", timeout)
        return code


def make_starter(*children: FakeProcess, ticks: Iterator[float] | None = None) -> ServerStarter:
    left = iter(children)
    moments = ticks or iter(float(number) for number in range(10_000))

    def start(settings: Settings, command: Sequence[str]) -> ServerProcess:
        return next(left)

    return ServerStarter(start, (), 15.0, lambda: next(moments), lambda _: None)


def test_a_server_that_answers_is_used(fake_server: FakeServer) -> None:
    with Client(Address(fake_server.home / "server.sock")) as client:
        assert ensure_server(client, make_settings(fake_server.home), print, make_starter())["pid"] == 7


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("error: old trouble\n")
    starter = make_starter(FakeProcess([None, 5]))

    def start(settings: Settings, command: Sequence[str]) -> ServerProcess:
        with settings.log.open("a") as log:
            log.write('Traceback (most recent call last):\n  File "x.py", line 1\nerror: the store is broken\nlast\n')
        return starter.spawn(settings, command)

    telling = ServerStarter(start, (), 15.0, starter.clock, starter.wait)
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable) as raised:
        ensure_server(client, make_settings(tmp_path), print, telling)
    assert raised.value.message == "the riseml server did not start: the store is broken"
    assert "server.log" in (raised.value.hint or "")


def test_every_problem_that_kept_a_server_from_starting_is_shown(tmp_path: Path) -> None:
    starter = make_starter(FakeProcess([None, 2]))

    def start(settings: Settings, command: Sequence[str]) -> ServerProcess:
        settings.log.write_text("error: pool.yml has 2 problems\n  pool.yml:1:1 hosts: one\n  pool.yml:2:1 x: two\n")
        return starter.spawn(settings, command)

    telling = ServerStarter(start, (), 15.0, starter.clock, starter.wait)
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable) as raised:
        ensure_server(client, make_settings(tmp_path), print, telling)
    assert raised.value.message.splitlines()[1:] == ["pool.yml:1:1 hosts: one", "pool.yml:2:1 x: two"]


def test_a_server_that_does_not_answer_in_time_is_an_error(tmp_path: Path) -> None:
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable, match="within 15 s"):
        ensure_server(client, make_settings(tmp_path), print, make_starter(FakeProcess([])))


def test_a_second_server_that_ends_quietly_is_not_a_failure(fake_server: FakeServer) -> None:
    """Two commands start a server at the same time: one server ends, and the other one answers."""
    left = fake_server.home / "server.sock"
    hidden = left.rename(fake_server.home / "hidden.sock")
    second = FakeProcess([None])
    children = [FakeProcess([0]), second]

    def start(settings: Settings, command: Sequence[str]) -> ServerProcess:
        if len(children) == 1:
            hidden.rename(left)
        return children.pop(0)

    moments = iter(float(number) for number in range(100))
    try:
        with Client(Address(left)) as client:
            starter = ServerStarter(start, (), 15.0, lambda: next(moments), lambda _: None)
            assert ensure_server(client, make_settings(fake_server.home), print, starter)["pid"] == 7
    finally:
        if hidden.exists():
            hidden.rename(left)
    assert not children
    assert second.terminated, "else it would take the lock when the server that answers has been stopped"


def _connect(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> str:
    def stop(client: Client, settings: Settings) -> None:
        fake_server.asked.append("stopped")
        fake_server.server |= {"version": __version__, "pid": 8}

    monkeypatch.setattr(local_server, "stop_server", stop)
    printer = Printer(io.StringIO(), io.StringIO())
    settings = read_settings({"RISEML_HOME": str(fake_server.home), **environ})
    connect_client(settings, environ, printer).close()
    assert isinstance(printer.err, io.StringIO)
    return printer.err.getvalue()


def test_an_older_server_is_replaced_with_a_message(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_server.server["version"] = "1.9.0"
    said = _connect(fake_server, monkeypatch, {})
    assert said == f"Replaced the riseml server 1.9.0 by {__version__}; training goes on.\n"
    assert "stopped" in fake_server.asked


@pytest.mark.parametrize(("times", "stopped"), [(1, 2), (2, 3), (99, 3)])
def test_an_older_server_that_another_command_starts_again_is_not_called_replaced(
    fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch, times: int, stopped: int
) -> None:
    """A command of the older version that follows an experiment starts the server that it has lost."""
    own = dict(fake_server.server)
    older = {"revision": "0lder", "package": None}
    fake_server.server |= older
    pids: list[int] = []

    def stop(client: Client, settings: Settings) -> None:
        pids.append(fake_server.server["pid"])
        fake_server.server |= {**own, "pid": 8 + len(pids)} | (older if len(pids) <= times else {})

    monkeypatch.setattr(local_server, "stop_server", stop)
    printer = Printer(io.StringIO(), io.StringIO())
    settings = read_settings({"RISEML_HOME": str(fake_server.home)})
    if times > stopped:
        with pytest.raises(Refused, match=r"starts another riseml server again \(process 11\)"):
            connect_client(settings, {}, printer)
    else:
        connect_client(settings, {}, printer).close()
        assert isinstance(printer.err, io.StringIO)
        assert "by one of this revision" in printer.err.getvalue()
    assert len(pids) == stopped


def test_a_newer_server_is_left_alone_with_a_warning(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_server.server["version"] = "99.0"
    assert "pip install --upgrade riseml" in _connect(fake_server, monkeypatch, {})
    assert "stopped" not in fake_server.asked


def test_a_server_with_another_engine_is_a_warning(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    said = _connect(fake_server, monkeypatch, {"DOCKER_HOST": "unix:///other/docker.sock"})
    assert "unix:///var/run/docker.sock" in said
    assert "riseml server stop" in said
    assert _connect(fake_server, monkeypatch, {"DOCKER_HOST": "unix:///var/run/docker.sock"}) == ""


def test_a_server_that_cannot_decide_is_a_warning(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_server.server["problem"] = "the store cannot grow: its disk is full; free some space there"
    said = _connect(fake_server, monkeypatch, {})
    assert "can decide nothing now: the store cannot grow: its disk is full; free some space there" in said


@pytest.mark.parametrize("variable", ["RISEML_OUTPUT", "RISEML_DATA"])
def test_a_server_with_other_folders_is_a_warning(
    fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    said = _connect(fake_server, monkeypatch, {variable: str(tmp_path / "other")})
    used = fake_server.home / variable.removeprefix("RISEML_").lower()
    assert f"the riseml server uses {used}, not {variable}={tmp_path / 'other'}; `riseml server stop`" in said
    assert _connect(fake_server, monkeypatch, {variable: str(used)}) == ""
    del fake_server.server[variable.removeprefix("RISEML_").lower()]  # an older server does not say
    assert _connect(fake_server, monkeypatch, {variable: str(tmp_path)}) == ""


def test_a_server_of_a_team_is_neither_started_nor_replaced(tmp_path: Path) -> None:
    environ = {"RISEML_SERVER": "http://127.0.0.1:1"}
    with pytest.raises(Unreachable, match="no riseml server answers"):
        connect_client(make_settings(tmp_path), environ, Printer(io.StringIO(), io.StringIO()))


@pytest.mark.parametrize(
    ("server", "code", "words"),
    [
        ({}, 0, ""),
        ({"revision": "0ther"}, 4, f"is another revision of {__version__} than this command"),
        ({"revision": None, "package": None}, 4, f"is another revision of {__version__} than this command"),
        ({"version": "1.9.0"}, 0, f"is 1.9.0, this command is {__version__}; upgrade riseml there, then restart it"),
        ({"version": "99.0", "revision": "0ther"}, 0, "upgrade the command with `pip install --upgrade riseml`"),
        ({"problem": "its disk is full"}, 0, "can decide nothing now: its disk is full"),
    ],
)
def test_a_server_elsewhere_of_another_state_of_riseml_is_named_with_what_to_restart(
    fake_server: FakeServer, replaced: list[int], riseml: Riseml, server: dict[str, Any], code: int, words: str
) -> None:
    fake_server.server |= server
    result = riseml("status", environ={"RISEML_SERVER": fake_server.url})
    assert (result.code, replaced) == (code, [])
    assert words in result.err
    assert (fake_server.url in result.err) is ("revision of" in words or "1.9.0" in words)
    if code:
        assert "restart it there with the riseml of this command" in result.err


@pytest.mark.parametrize("count", ["active", "closing"])
def test_the_executor_stays_until_nothing_is_left_of_its_experiments(
    riseml: Riseml, fake_server: FakeServer, count: str
) -> None:
    fake_server.server[count] = 1
    refused = riseml("train", "-d", environ={"RISEML_EXECUTOR": "process"})
    assert refused.code == 4
    assert "uses the docker executor for 1 experiment, so it cannot change to process" in refused.err


def test_a_server_that_cannot_use_its_store_is_named_and_not_joined_by_another_one(fake_server: FakeServer) -> None:
    fake_server.refuse("GET /server", "StoreError", "the store postgresql://db does not answer", status=503)
    with (
        Client(Address(fake_server.home / "server.sock")) as client,
        pytest.raises(StoreError, match="postgresql://db"),
    ):
        ensure_server(client, make_settings(fake_server.home), print, make_starter())


def test_a_server_that_is_killed_while_it_starts_is_started_again(fake_server: FakeServer) -> None:
    hidden = (fake_server.home / "server.sock").rename(fake_server.home / "hidden.sock")
    children = [FakeProcess([-9]), FakeProcess([-9]), FakeProcess([None])]

    def start(settings: Settings, command: Sequence[str]) -> ServerProcess:
        if len(children) == 1:
            hidden.rename(fake_server.home / "server.sock")
        return children.pop(0)

    moments = iter(float(number) for number in range(100))
    starter = ServerStarter(start, (), 15.0, lambda: next(moments), lambda _: None)
    with Client(Address(fake_server.home / "server.sock")) as client:
        assert ensure_server(client, make_settings(fake_server.home), print, starter)["pid"] == 7
    assert not children


def test_a_server_that_is_killed_each_time_is_an_error(tmp_path: Path) -> None:
    children = [FakeProcess([-9]) for _ in range(6)]
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable, match="did not start"):
        ensure_server(client, make_settings(tmp_path), print, make_starter(*children))


def test_a_command_that_follows_starts_killed_servers_as_often_as_needed_with_growing_pauses(
    fake_server: FakeServer,
) -> None:
    """Together they take far more than the time that one server has to start."""
    hidden = (fake_server.home / "server.sock").rename(fake_server.home / "hidden.sock")
    children = [*[FakeProcess([None, -9]) for _ in range(30)], FakeProcess([None])]
    pauses: list[float] = []

    def start(settings: Settings, command: Sequence[str]) -> ServerProcess:
        if len(children) == 1:
            hidden.rename(fake_server.home / "server.sock")
        return children.pop(0)

    def wait(seconds: float) -> None:
        pauses.append(seconds)

    moments = iter(float(number) for number in range(1000))
    starter = ServerStarter(start, (), 15.0, lambda: next(moments), wait, most_killed=None)
    with Client(Address(fake_server.home / "server.sock")) as client:
        assert ensure_server(client, make_settings(fake_server.home), print, starter)["pid"] == 7
    assert not children
    assert pauses[:5] == [0.0, 0.2, 0.4, 0.8, 1.6]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 10.0


def test_a_start_that_takes_long_names_the_server_and_its_store(tmp_path: Path) -> None:
    told: list[str] = []
    settings = replace(make_settings(tmp_path), store="postgresql+psycopg://me:secret@db.example/riseml")
    with Client(Address(tmp_path / "server.sock")) as client, pytest.raises(Unreachable, match="within 15 s"):
        ensure_server(client, settings, told.append, make_starter(FakeProcess([])))
    assert told == ["Waiting for the riseml server to start (process 6), whose store is the PostgreSQL at db.example."]


def test_a_server_that_stands_still_is_named_once_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_http, "PATIENCE", 0.01)
    told: list[int] = []
    body = json.dumps({"version": __version__, "pid": 7, "executor": "docker", "active": 0})
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "server.sock"))
        listener.listen()

        def answer_late(pid: int) -> None:
            told.append(pid)
            door, _ = listener.accept()
            with door:
                door.sendall(f"{head}{body}".encode())

        with Client(Address(tmp_path / "server.sock")) as client:
            client.call_on_silence(answer_late)
            assert client.get_server()["pid"] == 7
    assert told == [os.getpid()]


def test_a_stopped_server_is_named_with_what_lets_it_go_on() -> None:
    with subprocess.Popen(["sleep", "3600"]) as process, Client(Address(url="http://node")) as client:
        assert "(process" in local_server._describe_silence(client, process.pid)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        told = local_server._describe_silence(client, process.pid)
        assert told.startswith(f"The riseml server (process {process.pid}) is stopped")
        assert f"`kill -CONT {process.pid}`" in told
        process.kill()
        assert "at http://node has not answered for 3 s" in local_server._describe_silence(client, 0)


@pytest.fixture
def replaced(fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes of servers that commands replaced; their successor is process 8, of this revision."""
    found: list[int] = []

    def stop_server(client: Client, settings: Settings) -> None:
        found.append(fake_server.server["pid"])
        fake_server.server |= {"pid": 8, "revision": wire_revision.read_revision()}

    monkeypatch.setattr(local_server, "stop_server", stop_server)
    return found


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({}, []),
        ({"active": 2}, []),
        ({"revision": "0ther", "active": 2}, [7]),
        ({"revision": "0ther", "package": "/other/riseml"}, [7]),
        ({"revision": None, "package": None, "active": 2}, [7]),
        ({"version": "99.0", "revision": "0ther", "active": 2}, []),
    ],
    ids=["this one", "in use", "changed since", "idle, of another installation", "says nothing", "a newer version"],
)
def test_a_server_of_another_revision_is_replaced_when_it_is_older_or_idle(
    fake_server: FakeServer, replaced: list[int], server: dict[str, Any], expected: list[int]
) -> None:
    fake_server.server |= server
    environ = {"RISEML_HOME": str(fake_server.home)}
    with connect_client(read_settings(environ), environ, Printer(io.StringIO(), io.StringIO())):
        assert replaced == expected


def test_a_server_of_another_revision_in_use_is_named_with_what_to_do(
    fake_server: FakeServer, replaced: list[int], riseml: Riseml
) -> None:
    fake_server.server |= {"revision": "0ther", "package": "/other/riseml", "active": 1}
    result = riseml("status")
    assert (result.code, replaced) == (4, [])
    assert "process 7) is another revision of" in result.err
    assert "it runs /other/riseml" in result.err
    assert "`riseml server stop` lets the next command start its own: training goes on" in result.err


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
        ("2.0.0", "2.0.0-1"),
        ("2.0.0-1", "2.0.0-2"),
        ("2.0.0.post1", "2.0.1.dev0"),
        ("2.0.0", "1!1.0"),
        ("2.9", "2.10"),
        ("unknown", "0.1"),
    ],
)
def test_versions_have_an_order(older: str, newer: str) -> None:
    assert compare_versions(older, newer) is VersionComparison.OLDER
    assert compare_versions(newer, older) is VersionComparison.NEWER


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2.0", "2.0.0"),
        ("v2.0.0", "2.0.0"),
        ("2.0.0", "2.0.0+local"),
        ("2.0.0-1", "2.0.0.post1"),
        ("2.0.0-rc.1", "2.0.0c1"),
        ("unknown", "nothing"),
    ],
)
def test_versions_may_be_the_same(one: str, other: str) -> None:
    assert compare_versions(one, other) is VersionComparison.SAME
    assert compare_versions(other, one) is VersionComparison.SAME


def test_a_user_who_has_logged_in_elsewhere_learns_that_the_own_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        raise Unreachable("the riseml server did not start")

    def connect(environ: dict[str, str]) -> str:
        printer = Printer(io.StringIO(), io.StringIO())
        own = {"RISEML_HOME": str(tmp_path), **environ}
        with pytest.raises(Unreachable):
            connect_client(read_settings(own), own, printer)
        assert isinstance(printer.err, io.StringIO)
        return printer.err.getvalue()

    monkeypatch.setattr(local_server, "_start_server", start)
    assert connect({}) == ""
    write_contexts(tmp_path / "config", Contexts(LOCAL, (ServerContext("gpu1", "https://gpu1:8443"),)))
    assert connect({}) == (
        "Starting your own server, because no login is current; `riseml context use NAME` goes elsewhere: gpu1.\n"
    )
    assert connect({"RISEML_SERVER": "local"}) == ""
