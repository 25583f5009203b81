"""The user's own server: started once, replaced when it is older, stopped on request."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack

import psutil

from riseml import __version__
from tests.real.e2e.console import OLD, OLD_RISEML, Console, run_old_server, write
from tests.support.rig import gang, single
from tests.support.waiting import DEADLINE


def test_commands_at_once_on_a_fresh_home_start_one_server(make_console: Callable[..., Console]) -> None:
    console = make_console()
    with ExitStack() as stack:
        started = [stack.enter_context(console.start("status")) for _ in range(4)]
        results = [running.finish() for running in started]
    assert {(result.code, result.err) for result in results} == {(0, "")}
    log = (console.home / "server.log").read_text()
    assert log.count(" serves ") == 1, log
    assert (console.home / "server.sock").stat().st_mode & 0o777 == 0o600


def test_an_older_server_is_replaced_and_training_goes_on(make_console: Callable[..., Console]) -> None:
    console = make_console()
    write(console.where, gang({"master": "echo before; sleep 600"}, stop_grace=1))
    with run_old_server(console) as old:
        first = console.run("train", "-d", command=OLD_RISEML)
        assert (first.code, first.err) == (0, "")
        console.wait(
            "all jobs run", lambda: len(console.run("status", first.id, command=OLD_RISEML).out.split("RUNNING")) > 5
        )
        assert console.run("server", "status", command=OLD_RISEML).out.startswith(f"Server: riseml {OLD}, ")
        replaced = console.run("status", first.id)
        assert replaced.err == f"Replaced the riseml server {OLD} by {__version__}; training goes on.\n"
        assert replaced.code == 0
        assert old.wait(DEADLINE) == 0
    assert console.containers(running=True) == ["master", "ps.1", "worker.1", "worker.2"]
    assert console.ask("server", "status")["version"] == __version__
    assert console.run("status", first.id).err == "", "it is said once"
    console.run("kill", first.id)
    found = console.end(first.id)
    assert {job["attempt"] for job in found["jobs"] if job["name"] != "build"} == {1}
    assert console.leftovers() == []


def test_an_older_command_leaves_a_newer_server_alone(make_console: Callable[..., Console]) -> None:
    console = make_console()
    console.run("server", "start")
    before = console.ask("server", "status")["pid"]
    result = console.run("status", command=OLD_RISEML)
    assert result.code == 0
    assert f"the riseml server is {__version__}, this command is {OLD}" in result.err
    assert console.ask("server", "status")["pid"] == before


def test_a_stopped_server_leaves_jobs_running_and_the_next_command_starts_it_again(
    make_console: Callable[..., Console],
) -> None:
    console = make_console()
    write(console.where, single("echo here; sleep 600", stop_grace=1))
    identity = console.run("train", "-d").id
    with console.start("logs") as running:
        running.wait_for("here")
        # The first line can reach the log before the engine has written the start down, and lists it.
        console.wait("the engine lists the job", lambda: console.containers(running=True) == ["train"])
        stopped = console.run("server", "stop")
        assert stopped.code == 0
        assert stopped.out.endswith(" 1 experiment goes on without it.\n")
        server = int(re.findall(r"process (\d+)", stopped.out)[0])
        assert not psutil.pid_exists(server) or psutil.Process(server).status() == psutil.STATUS_ZOMBIE
        assert console.containers(running=True) == ["train"]
        assert console.run("kill").code == 0
        result = running.finish()
    assert result.code == 0
    assert f"Experiment {identity} KILLED" in result.out
    assert console.leftovers() == []
