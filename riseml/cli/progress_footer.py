"""Lines below a log on a terminal: what the experiment waits for before it runs, and how far it is while it runs.

A thread asks the server, because the command itself waits for the log: once a second while something waits, every three
seconds while jobs run. It ends with the experiment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from riseml.base.errors import RisemlError
from riseml.cli.output.log_lines import is_job_id
from riseml.cli.output.progress import RateMeter
from riseml.cli.output.progress_view import draw_job_progress
from riseml.cli.output.style import BEFORE_OUTPUT, ENDED_STATES
from riseml.cli.output.waiting_view import list_waiting
from riseml.client.server_client import Address, Client

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Printer
    from riseml.cli.output.style import Style

_INTERVAL = 1.0  # seconds between two requests while something waits
_RUNNING_INTERVAL = 3.0  # seconds between two requests while it runs
_MOST_LINES = 4  # experiments of a set whose progress is shown


class ProgressFooter:
    """Draws below what a printer prints, until the experiment has ended.

    Args:
        printer: of a terminal.
        identity: the experiment.
        address: of the server; the thread has connections of its own.
        clock: returns seconds.

    Example:
        with ProgressFooter(printer, "4", client.address, time.monotonic) as footer:
            for entry in log:
                footer.note_entry(entry)
    """

    def __init__(self, printer: Printer, identity: str, address: Address, clock: Callable[[], float]) -> None:
        self._printer = printer
        self._identity = identity
        self._address = address
        self._clock = clock
        self._stop: threading.Event | None = None  # stops the thread that draws now

    def __enter__(self) -> ProgressFooter:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_drawing()

    def note_entry(self, entry: wire.Entry) -> None:
        """Take note of a change of state in the log, which shows whether the experiment waits, runs or has ended."""
        if entry["type"] != "state" or is_job_id(entry["id"]):
            return
        if entry["state"] not in ENDED_STATES:
            if entry["id"] == self._identity:
                self._erase()  # what it waited for
            self._start()
        elif entry["id"] == self._identity:
            self._end_drawing()

    def _start(self) -> None:
        with self._printer.hold():
            if self._stop is None:
                self._stop = threading.Event()
                threading.Thread(target=self._draw_until, args=(self._stop,), name="progress", daemon=True).start()

    def _end_drawing(self) -> None:
        """Erase the lines. The thread may wait for an answer of the server: it draws nothing after that."""
        with self._printer.hold():
            if self._stop is not None:
                self._stop.set()
                self._stop = None
                self._printer.end_redraw()

    def _erase(self) -> None:
        with self._printer.hold():
            if self._stop is not None:
                self._printer.end_redraw()

    def _draw_until(self, stop: threading.Event) -> None:
        meters: dict[tuple[str, str], RateMeter] = {}
        interval = _INTERVAL
        with Client(self._address) as client:
            while not stop.wait(interval):
                try:
                    experiment = client.get_experiment(self._identity)
                    explanation = _explain_waiting(client, experiment)
                except RisemlError:
                    continue  # the command itself will notice and report the error
                with self._printer.hold():
                    if stop.is_set():
                        return
                    if experiment["state"] in ENDED_STATES:
                        self._end_drawing()
                        return
                    interval = _INTERVAL if explanation is not None else _RUNNING_INTERVAL
                    lines = (
                        _list_progress(experiment, self._printer.style)
                        if explanation is None
                        else self._list_lines(explanation, meters)
                    )
                    if lines:
                        self._printer.redraw(lines, stays=False)
                    else:
                        self._printer.end_redraw()

    def _list_lines(self, explanation: wire.ExplanationView, meters: dict[tuple[str, str], RateMeter]) -> list[str]:
        for activity in explanation["activities"]:
            key = (activity["host"], activity["work"])
            meters.setdefault(key, RateMeter()).add_amount(activity["done"], self._clock())
        return list_waiting(explanation, {key: meter.rate for key, meter in meters.items()}, self._printer.style)


def _explain_waiting(client: Client, experiment: wire.ExperimentView) -> wire.ExplanationView | None:
    """Return what an experiment waits for, or of a set the first member that waits; None: nothing waits."""
    waiting = [single["id"] for single in experiment["experiments"] or [experiment] if single["state"] in BEFORE_OUTPUT]
    return client.explain_experiment(waiting[0]) if waiting else None


def _list_progress(experiment: wire.ExperimentView, style: Style) -> list[str]:
    """Return a bar for an experiment whose progress is known, or for the first such members of a set."""
    return [
        line
        for single in experiment["experiments"] or [experiment]
        if (progress := single.get("progress")) is not None  # a server of an earlier version sends none
        for line in draw_job_progress(single["id"], progress, style)
    ][:_MOST_LINES]
