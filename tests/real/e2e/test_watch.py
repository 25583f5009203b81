"""Watching a real run on terminals of several sizes: drawn in its place, the same content in a pipe, Ctrl-C clean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.real.e2e.console import RISEML, Console
from tests.support.rig import single
from tests.support.screen import Screen
from tests.support.terminal import open_terminal

Project = Callable[..., Path]
TICKS = "i=0; while true; do i=$((i+1)); echo step $i; sleep 0.2; done"
TITLES = ("CPU", "MEM", "MEM limit", "NET in", "NET out")


@pytest.fixture
def identity(console: Console, project: Project) -> Iterator[str]:
    """Return the ID of an experiment that runs."""
    project(single(TICKS, stop_grace=1))
    started = console.run("train", "-d").id
    with console.start("logs", started) as running:
        running.wait_for("step 3")
    yield started
    console.run("kill", started, "-f")
    console.end(started)


def test_train_shows_each_install_step_below_the_log_until_the_experiment_runs(
    console: Console, project: Project
) -> None:
    marks = [uuid4().hex for _ in range(2)]  # no cache has these steps
    steps = [f"until [ -e /{mark} ]; do sleep 0.1; done" for mark in marks]
    project(single("echo hello", install=steps))
    environ = console.environ() | {"TERM": "xterm-256color"}
    with open_terminal([*RISEML, "train"], console.where, environ, (80, 40)) as terminal:
        for number, (mark, step) in enumerate(zip(marks, steps, strict=True), 1):
            said = f"Install step {number} of 2 on "
            terminal.wait_for(said, _shows(said, step))
            _end_step(console, mark)
        terminal.wait_for("it has run", lambda screen: _has(screen, "hello", "FINISHED"))
        assert terminal.finish() == 0
        lines = terminal.screen.lines()
        assert not any(line.startswith("Install step") for line in lines)
        assert sum("| [" in line and line.endswith("hello") for line in lines) == 1
        assert terminal.screen.cursor_shown


def test_train_shows_the_place_in_the_queue_and_ctrl_c_leaves_the_log(console: Console, project: Project) -> None:
    project(single("sleep 600", stop_grace=1, resources={"cpus": 1.5, "mem": "64MiB"}))
    first = console.run("train", "-d").id
    environ = console.environ() | {"TERM": "xterm-256color"}
    with open_terminal([*RISEML, "train"], console.where, environ, (80, 40)) as terminal:
        wanted = ("waits at place 1 of 1 in the queue", "no room now")
        terminal.wait_for("the place", lambda screen: _has(screen, *wanted))
        terminal.press("\x03")
        assert terminal.finish() == 130
        text = "\n".join(terminal.screen.lines())
        assert "waits at place" not in text
        assert "will continue in background" in text
    second = str(int(first) + 1)
    assert console.run("kill", first, second, "-f").code == 0
    for identity in (first, second):
        console.end(identity)


def _end_step(console: Console, mark: str) -> None:
    """Make the file that an install step waits for, in the container in which the engine runs the step."""
    api = console.engine.api

    def find_container() -> str | None:
        return next((str(row["Id"]) for row in api.containers() if mark in row["Command"]), None)

    container = console.wait("the step runs", find_container)
    api.exec_start(api.exec_create(container, ["touch", f"/{mark}"])["Id"])


def _shows(*texts: str) -> Callable[[Screen], bool]:
    return lambda screen: _has(screen, *texts)


def _has(screen: Screen, *texts: str) -> bool:
    shown = "\n".join(screen.lines())
    return all(text in shown for text in texts)


def _is_drawn_once(screen: Screen, job: str) -> bool:
    """Return true when the whole view is there, without lines of an earlier drawing."""
    return _has(screen, job, *TITLES, "/0.1 cores", "LINES") and sum(job in line for line in screen.lines()) == 1


def test_a_live_monitor_fits_every_terminal_and_ends_cleanly(console: Console, identity: str) -> None:
    command, environ = [*RISEML, "monitor"], console.environ() | {"TERM": "xterm-256color"}
    job = f"{identity}.train"
    with open_terminal(command, console.where, environ, (80, 24)) as terminal:
        terminal.wait_for("bars and rates", lambda screen: _has(screen, job, *TITLES, "/0.1 cores", "/s", "▁"))
        for columns in (200, 40):
            terminal.resize(columns, 24)
            terminal.wait_for("it is drawn again, once", lambda screen: _is_drawn_once(screen, job))
            assert max(map(len, terminal.screen.lines())) <= columns
        assert terminal.screen.painted
        terminal.press("\x03")
        assert terminal.finish() == 130
        assert terminal.screen.cursor_shown
        assert terminal.screen.lines()[-1] == "Interrupted."
        assert "\x1b[?1049h" not in terminal.raw  # the usual screen


def test_no_color_and_a_pipe_have_the_same_content(console: Console, identity: str) -> None:
    piped = console.run("monitor", identity, "--once")
    assert (piped.code, piped.err) == (0, "")
    head, row = piped.out.splitlines()
    environ = console.environ() | {"TERM": "xterm-256color", "NO_COLOR": "1"}
    for columns in (40, 80, 200):
        with open_terminal([*RISEML, "monitor", identity, "--once"], console.where, environ, (columns, 24)) as terminal:
            assert terminal.finish() == 0
            assert "\x1b" not in terminal.raw
            text = "\n".join(terminal.screen.lines())
        for title in re.split(" {2,}", head):
            assert title.removesuffix(" used/asked") in text or title in ("ID", "STATE", "PROJECT")
        for cell in (f"{identity}.train", "RUNNING", "toaster", "/0.1 cores", "/64 MiB"):
            assert cell in text
            assert cell in row or cell == "/64 MiB"  # a unit that two amounts share is said once
        assert max(map(len, text.splitlines())) <= columns


def test_status_is_watched_to_the_end_of_the_experiment(console: Console, identity: str) -> None:
    environ = console.environ() | {"TERM": "xterm-256color"}
    with open_terminal([*RISEML, "status", identity, "-w"], console.where, environ, (80, 40)) as terminal:
        terminal.wait_for("it runs", lambda screen: _has(screen, "State: RUNNING", f"{identity}.train"))
        assert console.run("kill", identity, "-f").code == 0
        assert terminal.finish() == 0
        lines = terminal.screen.lines()
        assert [line for line in lines if line.startswith("State:")] == ["State: KILLED"]
        assert terminal.screen.cursor_shown
