"""What a user sees on a terminal of 80 and of 200 columns, with and without colours, and in a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

from riseml import wire
from tests.support.waiting import DEADLINE
from tests.unit.cli.comparisons import FOUND as COMPARISON
from tests.unit.cli.fake_server import NOW, FakeServer, end, line, make_experiment, make_job, state
from tests.unit.cli.result_rows import FOUND as RESULTS
from tests.unit.cli.result_rows import make_history, make_metric, make_result

RISEML = (sys.executable, "-c", "from riseml.cli.main import run; run()")
ROWS = 40
LONG = "the loss of this step is " + "0.123456789 " * 9


def _environ(fake_server: FakeServer, **more: str) -> dict[str, str]:
    sizes = ("COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RISEML_", "DOCKER_", *sizes))}
    return kept | {"RISEML_HOME": str(fake_server.home), "TERM": "xterm-256color", "LANG": "C.UTF-8"} | more


@contextmanager
def _session(words: list[str], where: Path, environ: dict[str, str], columns: int) -> Iterator[pyte.Screen]:
    """Run a command on a terminal to its end, and yield the screen."""
    screen = pyte.Screen(columns, ROWS)
    stream = pyte.Stream(screen)
    child = pexpect.spawn(
        RISEML[0],
        [*RISEML[1:], *words],
        cwd=str(where),
        env=environ,
        encoding="utf-8",
        dimensions=(ROWS, columns),
        timeout=DEADLINE,
    )
    try:
        child.expect(pexpect.EOF)
        stream.feed(child.before or "")
        yield screen
    finally:
        child.close()


def _lines(screen: pyte.Screen) -> list[str]:
    return "\n".join(row.rstrip() for row in screen.display).rstrip().splitlines()


def _find_colours(screen: pyte.Screen) -> set[str]:
    return {screen.buffer[row][column].fg for row in range(ROWS) for column in range(screen.columns)}


def _fold(text: str, columns: int) -> list[str]:
    """Return a line as a terminal shows it."""
    return [text[at : at + columns].rstrip() for at in range(0, len(text), columns)]


@pytest.fixture
def log(fake_server: FakeServer) -> list[str]:
    """Let the fake server have a gang that has ended, and return the lines that its log should have."""
    jobs = [make_job(f"4.{name}", state="FINISHED") for name in ("master", "worker.1", "ps.1")]
    fake_server.experiments["4"] = make_experiment(
        state="FINISHED", jobs=jobs, ended_at="2026-08-31T07:25:46Z", output="/out/4", closed=True
    )
    stopped = {"reason": "NO_LONGER_NEEDED", "sentence": "Stopped: the experiment has its verdict", "exit_code": 143}
    entries: list[wire.Entry] = [
        state("STARTING", 1, job="4", reason="PLACED", sentence="Starting on its host"),
        state("RUNNING", 2),
        line(LONG, 3),
        line("学習中", 4, job="4.worker.1"),
        state("FINISHED", 5, reason="COMPLETED", sentence="Completed", exit_code=0),
        state("FINISHED", 6, job="4.ps.1", **stopped),
        end(number=7),
    ]
    fake_server.entries = entries
    return [
        "4           STARTING",
        "4.master    RUNNING",
        f"master   | {LONG.rstrip()}",
        "worker.1 | 学習中",
        "4.master    FINISHED",
        "4.ps.1      FINISHED",
        "",
        "Experiment 4 FINISHED after 2m00s",
        "  Output  /out/4",
        "  Next    riseml ls output://4",
        "          riseml show 4",
    ]


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("colour", [True, False])
def test_a_log_on_a_terminal(
    fake_server: FakeServer, folder: Path, log: list[str], columns: int, *, colour: bool
) -> None:
    environ = _environ(fake_server, **({} if colour else {"NO_COLOR": "1"}))
    with _session(["logs", "4"], folder, environ, columns) as screen:
        shown = [row.replace("学 習 中", "学習中").rstrip() for row in _lines(screen)]
        assert shown == [part for text in log for part in (_fold(text, columns) or [""])]
        assert _find_colours(screen) == ({"default", "cyan", "brown", "magenta", "green"} if colour else {"default"})


@pytest.fixture
def wide_project(fake_server: FakeServer) -> None:
    """Let the fake server have experiments whose tables are wider than 80 columns."""
    for number in (4, 5):
        fake_server.experiments[str(number)] = make_experiment(
            str(number),
            project="損失-of-a-long-project",
            state="FINISHED",
            parameters={"lr": f"0.{number}", "optimizer": "adam with warmup and decay"[: 20 + number]},
            main_metric={"name": "accuracy", "last": 0.98},
            ended_at="2026-08-31T07:25:46Z",
        )
    rows = [
        make_result(at, at, make_metric("accuracy", 0.1 * at), *(make_metric(f"loss_{name}", at) for name in "abcdef"))
        for at in (1, 2)
    ]
    names = ["accuracy", *(f"loss_{name}" for name in "abcdef")]
    fake_server.answers["GET /results"] = (200, {**RESULTS, "metrics": names, "best": rows[0], "experiments": rows})
    fake_server.answers["GET /comparison"] = (200, COMPARISON)
    for sub in (1, 2):
        fake_server.answers[f"GET /experiments/144.{sub}/metrics/history"] = (200, make_history(sub, 0.1, 0.2, 0.45))
    idle = {name: None for name in ("net_in", "net_out", "disk_read", "disk_write", "gpu", "gpu_mem_used")}
    sample: dict[str, Any] = {
        "id": "4.master",
        "project": "損失",
        "state": "RUNNING",
        "host": "local",
        "node": None,
        "time": NOW,
    }
    sample |= {"cpu": 0.42, "mem": 1.0, "mem_used": 2**20, "mem_total": 2**30, "lines": None, **idle}
    sample |= {"cpus": 0.1, "mem_mib": 64, "gpus": 0, "image": "python:3.11", "gpu_mem": None, "gpu_mem_total": None}
    fake_server.answers["GET /samples"] = (200, {"samples": [sample]})


TABLES = {
    "status -a -l": ("損失", "FINISHED", "0.98", "0/2 ended"),
    "results 144": ("accuracy", "lr"),
    "results 144 --all": ("accuracy", "lr"),
    "compare 4 7": ("accuracy", "0.333333"),
    "plot 144": ("accuracy", "144.1"),
    "monitor --once": ("0.0042/0.1 cores", "4.master"),
}


@pytest.mark.parametrize("words", TABLES)
@pytest.mark.usefixtures("wide_project")
def test_a_table_on_a_terminal_has_no_broken_row(fake_server: FakeServer, folder: Path, words: str) -> None:
    environ = _environ(fake_server)
    narrow, plain, wide = (
        _show_rows(words.split(), folder, environ | more, columns)
        for columns, more in ((80, {}), (80, {"NO_COLOR": "1"}), (200, {}))
    )
    assert narrow == plain or words.startswith("plot"), "curves have marks where they have no colours"
    piped = subprocess.run(
        [*RISEML, *words.split()],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    for shown in ("\n".join(narrow), "\n".join(wide), piped.stdout):
        assert [expected for expected in TABLES[words] if expected not in shown] == []
        if words.startswith("status"):
            assert len(shown.strip().splitlines()) == 3, "a row for each experiment"


def _show_rows(words: list[str], folder: Path, environ: dict[str, str], columns: int) -> list[str]:
    """Return the rows that a terminal shows, without the empty cell behind each wide character."""
    with _session(words, folder, environ, columns) as screen:
        return ["".join(cell.data for cell in _list_cells(screen, row)).rstrip() for row in range(ROWS)]


def _list_cells(screen: pyte.Screen, row: int) -> list[pyte.screens.Char]:
    return [screen.buffer[row][column] for column in range(screen.columns)]


def test_a_log_in_a_pipe(fake_server: FakeServer, folder: Path, log: list[str]) -> None:
    done = subprocess.run(
        [*RISEML, "logs", "4"],
        cwd=folder,
        env=_environ(fake_server),
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert [text.rstrip() for text in done.stdout.splitlines()] == log
    assert done.stderr == ""
