"""How far long work is: on a terminal a bar with amounts, rate and time left; elsewhere lines as ever."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Generator
from contextlib import closing
from itertools import islice
from typing import Literal

import pytest

from riseml import wire
from riseml.cli.output.explanation_view import list_explanation
from riseml.cli.output.printer import Printer
from riseml.cli.output.progress import RateMeter, describe_bytes, draw_progress, format_clock
from riseml.cli.output.style import Style
from riseml.cli.output.waiting_view import list_waiting
from riseml.cli.output.widths import measure_width
from riseml.cli.progress_footer import ProgressFooter
from riseml.cli.sync_progress import show_sync
from riseml.client.server_client import Address
from tests.support.screen import read_screen
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import NOW, FakeServer, finish, line, make_experiment, make_search, state

MB = 10**6


Work = Literal["pull", "install", "send", "data"]


def explain(*activities: tuple[Work, str, int, int | None], **changes: object) -> wire.ExplanationView:
    found: wire.ExplanationView = {
        "id": "4",
        "phase": "prepares",
        "state": "BUILDING",
        "reason": "PREPARE",
        "summary": "The environment is being prepared",
        "queue": None,
        "blockers": [],
        "hosts": [],
        "jobs": [],
        "activities": [
            {"host": "gpu1", "work": work, "what": what, "done": done, "total": total}
            for work, what, done, total in activities
        ],
        "network": None,
        "network_host": None,
    }
    return {**found, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


def test_a_rate_is_that_of_the_last_seconds() -> None:
    meter = RateMeter()
    assert meter.rate is None
    for now in range(30):
        meter.add_amount(MB * now if now < 10 else 10 * MB + 5 * MB * (now - 10), float(now))
    assert meter.rate == 5 * MB
    meter.add_amount(0, 30.0)  # another layer, another image
    assert meter.rate is None


@pytest.mark.parametrize(
    ("total", "rate", "shown"),
    [
        (45_600_000, 8_100_000, "12.3 MB of 45.6 MB, 8.1 MB/s, 0:04 left"),
        (45_600_000, 0.0, "12.3 MB of 45.6 MB, 0 B/s"),
        (None, 8_100_000, "12.3 MB, 8.1 MB/s"),
        (None, None, "12.3 MB"),
    ],
)
def test_amounts_rate_and_time_left(total: int | None, rate: float | None, shown: str) -> None:
    assert describe_bytes(12_300_000, total, rate) == shown


def test_a_clock() -> None:
    assert [format_clock(seconds) for seconds in (0, 59.6, 3723, -5)] == ["0:00", "1:00", "1:02:03", "0:00"]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("fraction", [None, 0.0, 0.27, 1.0, 7.5])
def test_progress_fits_every_terminal(width: int, fraction: float | None, *, colour: bool) -> None:
    amounts = "12.3 MB of 45.6 MB, 8.1 MB/s, 0:04 left"
    lines = draw_progress("Syncing", fraction, amounts, Style(colour, width))
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in lines]
    assert all(measure_width(text) <= width for text in plain)
    assert any("━" in text or "─" in text for text in plain) is (fraction is not None and width > 40)
    assert "Syncing" in plain[0]
    assert amounts[: width - 3] in "\n".join(plain)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_hosts_do_for_an_environment(width: int) -> None:
    found = explain(
        ("pull", "tensorflow/tensorflow:2.21.0", 123 * MB, 456 * MB),
        ("install", "pip install -r requirements.txt", 2, 5),
        ("send", "riseml/environment:1", 3 * MB, None),
    )
    lines = list_waiting(found, {("gpu1", "pull"): 8.0 * MB}, Style(width=width))
    assert all(measure_width(text) <= width for text in lines)
    text = "\n".join(lines)
    for part in ("123.0 MB of 456.0 MB", "Install step 2 of 5 on gpu1", "Sending the environment to gpu1", "3.0 MB"):
        assert part in text
    assert "Sending the environment to gpu1: 3.0 MB" in list_explanation(found, Style())


def test_places_say_the_images_of_roles_where_they_differ() -> None:
    place: wire.JobPlaceView = {
        "job": "learner",
        "state": "RUNNING",
        "host": "gpu1",
        "node": None,
        "gpus": [],
        "address": None,
        "port": None,
        "image": "python:3.11",
        "why": "first",
        "alternatives": [],
    }
    same = "\n".join(list_explanation(explain(phase="placed", jobs=[place, place]), Style()))
    other: wire.JobPlaceView = {**place, "job": "actor.1", "image": "redis:7"}
    both = "\n".join(list_explanation(explain(phase="placed", jobs=[place, other]), Style()))
    assert ("IMAGE" in same, "IMAGE" in both) == (False, True)
    assert "redis:7" in both


def test_the_place_in_the_queue_and_what_is_missing() -> None:
    queue: wire.QueuePlaceView = {"position": 2, "length": 3, "ahead": ["3"]}
    found = explain(phase="waits", queue=queue, summary="no room now, and 3 is next before it; gpu1 lacks 2 CPUs")
    assert list_waiting(found, {}, Style(width=80)) == [
        "4 waits at place 2 of 3 in the queue, behind 3",
        "no room now, and 3 is next before it; gpu1 lacks 2 CPUs",
    ]


# --- sync ---


def _sync(printer: Printer, seconds: float) -> Generator[bytes, None, None]:
    """Return the pieces of a sync in which each of ten pieces takes `seconds`."""
    times = iter(seconds * number for number in range(100))
    return show_sync(iter([b"x" * MB] * 10), 10 * MB, printer, lambda: next(times))


def test_a_sync_that_takes_a_while_has_a_bar_that_goes_away() -> None:
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    printer.begin_line("Syncing project (10.0 MB, 1 file)...")
    shown: list[str] = []
    for piece in _sync(printer, 1.0):
        assert len(piece) == MB
        shown.append(terminal.getvalue())
    printer.print_lines(["done"])
    assert "8.0 MB of 10.0 MB, 1.0 MB/s, 0:02 left" in shown[-1]
    assert read_screen(terminal.getvalue(), 80, 24) == ["Syncing project (10.0 MB, 1 file)...", "done"]


def test_a_sync_that_ends_early_takes_its_bar_away() -> None:
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    printer.begin_line("Syncing project (10.0 MB, 1 file)...")
    with closing(_sync(printer, 1.0)) as pieces:
        assert len(list(islice(pieces, 5))) == 5
    printer.print_lines(["done"])
    assert "MB of 10.0 MB" in terminal.getvalue()
    assert read_screen(terminal.getvalue(), 80, 24) == ["Syncing project (10.0 MB, 1 file)...", "done"]


@pytest.mark.parametrize(("live", "seconds"), [(True, 0.01), (False, 1.0)])
def test_a_short_sync_and_a_pipe_have_no_bar(seconds: float, *, live: bool) -> None:
    out = io.StringIO()
    assert len(list(_sync(Printer(out, out, live=live), seconds))) == 10
    assert out.getvalue() == ""


# --- below a log ---


def test_lines_of_a_log_come_above_what_an_experiment_waits_for(fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment(state="BUILDING")
    answer = explain(("install", "pip install x", 1, 2))
    fake_server.answers["GET /experiments/4/explain"] = (200, answer)
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    address = Address(fake_server.home / "server.sock")

    def has_drawn(times: int) -> bool:
        return terminal.getvalue().count("Install step 1 of 2") >= times

    with ProgressFooter(printer, "4", address, lambda: 0.0) as footer:
        wait_for("it is drawn", lambda: has_drawn(1), DEADLINE)
        printer.print_lines(["a line of the build"])
        assert read_screen(terminal.getvalue(), 80, 24)[0] == "a line of the build"
        assert read_screen(terminal.getvalue(), 80, 24)[1].startswith("Install step 1 of 2 on gpu1  ─")
        footer.note_entry(line("a line of a job"))
        footer.note_entry(state("RUNNING", job="4.master"))
        footer.note_entry(state("RUNNING", job="4"))
        assert read_screen(terminal.getvalue(), 80, 24) == ["a line of the build"]
        before = terminal.getvalue().count("Install step")
        footer.note_entry(state("PENDING", job="4"))  # another attempt
        wait_for("it is drawn again", lambda: has_drawn(before + 1), DEADLINE)
        printer.say("Lost the riseml server")
    assert read_screen(terminal.getvalue(), 80, 24) == ["a line of the build", "Lost the riseml server"]


def test_nothing_is_asked_once_the_experiment_runs(fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    with ProgressFooter(printer, "4", Address(fake_server.home / "server.sock"), lambda: 0.0):
        wait_for("the server is asked", lambda: "GET /experiments/4" in fake_server.asked, DEADLINE)
        wait_for("the thread ends", lambda: all(one.name != "progress" for one in threading.enumerate()), DEADLINE)
    assert (terminal.getvalue(), fake_server.asked) == ("", ["GET /experiments/4"])


def test_what_is_not_a_terminal_asks_for_no_progress(riseml: Riseml, fake_server: FakeServer) -> None:
    finish(fake_server)
    fake_server.experiments["4"]["state"] = "BUILDING"
    assert riseml("train").code == 0
    assert not any("explain" in asked for asked in fake_server.asked)


def test_a_set_is_explained_by_its_members_and_its_search(riseml: Riseml, fake_server: FakeServer) -> None:
    states = {"4.1": "FINISHED", "4.2": "RUNNING", "4.3": "PENDING"}
    members = [make_experiment(name, state=state, started_at=None) for name, state in states.items()]
    members[1]["started_at"] = NOW
    search = make_search(next="makes trial 4 of 9 when 4.3 has got a place")
    fake_server.experiments["4"] = make_experiment(type="set", state="RUNNING", experiments=members, search=search)
    host = {"host": "gpu1", "obstacle": "drained", "text": "is drained", "jobs": []}
    waits = explain(id="4.3", phase="waits", state="PENDING", summary="no room now", hosts=[host])
    runs = explain(id="4.2", phase="placed", state="RUNNING", summary="it runs on gpu1")
    fake_server.answers["GET /experiments/4.3/explain"] = (200, waits)
    fake_server.answers["GET /experiments/4.2/explain"] = (200, runs)
    assert riseml("explain", "4").out.splitlines() == [
        "4 RUNNING: 3 experiments: 1 FINISHED, 1 RUNNING, 1 PENDING",
        "  4.3 PENDING: no room now",
        "  4.2 RUNNING: it runs on gpu1",
        "The search makes trial 4 of 9 when 4.3 has got a place.",
        "",
        "Why 4.3 waits:",
        "HOST  JOB  WHY NOT",
        "gpu1  all  is drained",
    ]
    shown = json.loads(riseml("explain", "4", "--json").out)
    assert (shown["counts"]["PENDING"], shown["members"][0]["id"]) == (1, "4.3")
