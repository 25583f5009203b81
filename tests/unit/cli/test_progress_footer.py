"""Lines below a log that say what the experiment waits for: on a terminal, before it runs."""

from __future__ import annotations

import io
import threading

from riseml import wire
from riseml.cli.output.printer import Printer
from riseml.cli.progress_footer import ProgressFooter
from riseml.client.server_client import Address
from tests.support.screen import read_screen
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.explanations import explain
from tests.unit.cli.fake_server import FakeServer, finish, line, make_experiment, state


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


def test_the_progress_of_what_runs_is_shown_until_it_has_ended(fake_server: FakeServer) -> None:
    progress: wire.ProgressView = {
        "job": "master",
        "done": 450,
        "of": 1000,
        "unit": "step",
        "fraction": 0.45,
        "per_second": 3.4,
        "remaining": 712.0,
        "spread": 20.0,
        "rounds": 0,
    }
    fake_server.experiments["4"] = {**make_experiment(), "progress": progress}
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    with ProgressFooter(printer, "4", Address(fake_server.home / "server.sock"), lambda: 0.0) as footer:
        wait_for("it is drawn", lambda: "450/1000" in terminal.getvalue(), DEADLINE)
        printer.print_lines(["a line of a job"])
        screen = read_screen(terminal.getvalue(), 80, 24)
        assert screen[0] == "a line of a job"
        assert screen[1].startswith("4  ━")
        assert screen[1].endswith("  step 450/1000, 45 %, about 12 m left")
        footer.note_entry(state("FINISHED", job="4"))
        assert read_screen(terminal.getvalue(), 80, 24) == ["a line of a job"]
        wait_for("the thread ends", lambda: all(one.name != "progress" for one in threading.enumerate()), DEADLINE)
    assert set(fake_server.asked) == {"GET /experiments/4"}


def test_nothing_is_drawn_where_the_progress_is_not_known(fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    terminal = io.StringIO()
    printer = Printer(terminal, terminal, live=True)
    with ProgressFooter(printer, "4", Address(fake_server.home / "server.sock"), lambda: 0.0) as footer:
        wait_for("the server is asked", lambda: "GET /experiments/4" in fake_server.asked, DEADLINE)
        footer.note_entry(state("FINISHED", job="4"))
        wait_for("the thread ends", lambda: all(one.name != "progress" for one in threading.enumerate()), DEADLINE)
    assert terminal.getvalue() == ""


def test_what_is_not_a_terminal_asks_for_no_progress(riseml: Riseml, fake_server: FakeServer) -> None:
    finish(fake_server)
    fake_server.experiments["4"]["state"] = "BUILDING"
    assert riseml("train").code == 0
    assert not any("explain" in asked for asked in fake_server.asked)
