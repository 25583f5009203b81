"""No line of a log loses its beginning or comes twice, and no report or value is lost, whatever the order of pieces.

The real writer and all readers against a simple model. Jobs print random pieces on two streams each, and begin new
attempts. Meanwhile clients read live and resume anywhere, the server counts metrics, saves, and is killed. In the suite
300 examples run, `make soak-logs` runs 10,000 others.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import JobName, parse_id
from riseml.base.states import State
from riseml.base.terminal_text import plain_line
from riseml.model import Frame, JobKey
from riseml.server.api.merged_log.log_stream import stream_entries
from riseml.server.api.merged_log.stream_cursor import StreamPosition, check_stream_cursor, parse_stream_cursor
from riseml.server.api.merged_log.stream_request import StreamRequest
from riseml.server.reconcile.notifier import Notifier
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.line_index import LineIndexes, Selection
from riseml.store.logs.line_state import LONGEST_LINE, cut_text
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.read_position import ReadPosition
from riseml.store.logs.report_lines import split_report
from riseml.store.metrics.line_patterns import LONGEST_LINE as LONGEST_SEARCHED
from riseml.store.metrics.line_patterns import PatternSearch
from riseml.store.metrics.metric_store import MetricStore
from tests.unit.store.submissions import NOW, submit

EXAMPLES = {"soak": 10_000, "few": 20}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 300)
JOBS = (JobName("master"), JobName("worker.1"), JobName("ps.1"))
PATTERNS = {"loss": "loss=([0-9]+)", "begun": "^BEGIN([0-9])"}
REPORT = b'riseml.report {"step": 3, "loss": 8}'
PIECES = (
    *(b"\n", b"a line\n", b"BEGIN3 ", b" loss=12", b" end\n", b"loss=4 end\n", b"BEGIN5 loss=6\n", b""),
    *(b"50%\r", b"\r100% loss=9", b"\r", b"\x1e", b"riseml.report {", b"1 master 1 - text\n", b"\xff\xc3\n"),
    *(REPORT + b"\n", b"\x1e" + REPORT + b"\n", REPORT[:20], REPORT[20:] + b"\n", REPORT, b"[2] "),
    *(b"x" * 17_000, b"y" * 17_000 + b" loss=1\n", b"z" * 600_000),
)
ACTS = ("read", "stream", "batch", "page", "count", "save", "kill", "tear", "attempt", "finish")


class Line(NamedTuple):
    """A line that a job has ended."""

    job: JobName
    attempt: int
    stream: int
    text: bytes  # as it was printed

    def split(self) -> tuple[bytes | None, bytes | None]:
        """Return what is shown, and the report."""
        return split_report(self.text) if self.stream == 1 else (self.text, None)

    def entries(self, *, reports: bool) -> Iterator[tuple[str, ...]]:
        """Yield what a client of the stream gets."""
        shown, report = self.split()
        if reports and report is not None:
            yield ("report", f"1.{self.job}", "8.0")
        if shown is not None:
            stream = "stdout" if self.stream == 1 else "stderr"
            yield ("line", f"1.{self.job}", stream, shown.decode("utf-8", "replace"))

    def values(self, metric: str) -> Iterator[float]:
        """Yield the values of a metric."""
        shown, report = self.split()
        states = [] if shown is None else [self._read(state) for state in reversed(shown.split(b"\r"))]
        visible = [state for state in states if len(states) == 1 or plain_line(state).strip()]
        match = re.search(PATTERNS[metric], visible[0] if visible else "")
        if match is not None:
            yield float(match[1])
        if report is not None and metric == "loss":
            yield 8.0

    @staticmethod
    def _read(state: bytes) -> str:
        return state.decode("utf-8", "replace")[:LONGEST_SEARCHED]


@dataclass
class Output:
    """The model: what jobs have printed."""

    lines: list[Line] = field(default_factory=list)  # in the order in which they ended
    _open: dict[tuple[JobName, int, int], bytes | None] = field(default_factory=dict)  # None: the rest is dropped

    def add(self, job: JobName, attempt: int, stream: int, piece: bytes) -> None:
        """Take a piece."""
        owner = (job, attempt, stream)
        before = self._open.pop(owner, b"")
        ends = piece.endswith(b"\n")
        if before is None:
            if not ends:
                self._open[owner] = None
            return
        text = before + piece.removesuffix(b"\n")
        if ends or len(text) > LONGEST_LINE:
            self.lines.append(Line(*owner, cut_text(text)))
        if not ends:
            self._open[owner] = None if len(text) > LONGEST_LINE else text

    def end_attempt(self, job: JobName, attempt: int) -> None:
        """End the open lines of an attempt."""
        for stream in (1, 2):
            if (job, attempt, stream) in self._open:
                self.add(job, attempt, stream, b"\n")

    def shown(self, *jobs: JobName) -> list[tuple[JobName, int, bytes]]:
        """Return what is shown of the lines of these jobs."""
        split = [(line, line.split()[0]) for line in self.lines if line.job in jobs]
        return [(line.job, line.stream, shown) for line, shown in split if shown is not None]


class Reader:
    """A client of the merged stream, which continues after anything that it has."""

    def __init__(self, *, batch: bool) -> None:
        self._batch = batch
        self._groups: list[tuple[str, list[tuple[str, ...]]]] = []  # cursors, and what came up to each one

    def read(self, world: World, choice: int) -> None:
        """Forget some of the last entries, and read on from there."""
        del self._groups[max(0, len(self._groups) - choice) :]
        cursor = self._groups[-1][0] if self._groups else ""
        lines: list[tuple[str, ...]] = []
        for entry in asyncio.run(world.stream(cursor, batch=self._batch)):
            lines += show(entry)
            if entry["cursor"] != cursor:  # else it comes again with the next one, as `stream_log` of the client has it
                cursor = entry["cursor"]
                self._groups.append((cursor, lines))
                lines = []
        assert not lines, "a cursor names everything"

    def list_lines(self) -> list[tuple[str, ...]]:
        """Return everything that came."""
        return [line for _, lines in self._groups for line in lines]


def show(entry: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the lines or the report of an entry."""
    if entry["type"] == "lines":
        for row in entry["text"].split("\n")[:-1]:
            yield ("line", entry["id"], entry["stream"], row.partition(" ")[2])
    elif entry["type"] == "line":
        yield ("line", entry["id"], entry["stream"], entry["text"])
    elif entry["type"] == "report":
        yield ("report", entry["id"], str(entry["values"]["loss"]))


class World:
    """A server with one experiment, and its readers."""

    def __init__(self, folder: Path, database: Database, search: PatternSearch) -> None:
        self.output = Output()
        self._folder = folder
        self._database = database
        self._search = search
        self._experiments = ExperimentStore(database)
        self._attempts = dict.fromkeys(JOBS, 1)
        self._printed: set[JobName] = set()  # jobs whose present attempt has printed
        self._clock = 0
        self._position = ReadPosition()  # of the reader that keeps its place in memory
        self._ends: list[ReadPosition] = []
        self._read: list[tuple[JobName, int, bytes]] = []
        self._readers = {"stream": Reader(batch=False), "batch": Reader(batch=True)}
        self._start_server()

    def _start_server(self) -> None:
        self.logs = LogStore(self._folder)
        self.metrics = MetricStore(self._database, self.logs, lambda _: PATTERNS)
        self.metrics._search = self._search
        self.metrics.recover()
        self._indexes = LineIndexes(self.logs)

    def print(self, job: JobName, stream: int, pieces: list[bytes]) -> None:
        """Print pieces, which the server stores at once."""
        attempt = self._attempts[job]
        if attempt > 1 and job not in self._printed:
            self.output.end_attempt(job, attempt - 1)
        self._printed.add(job)
        frames = []
        for piece in pieces:
            self._clock += 1
            frames.append(Frame(f"2026-08-31T07:23:46.{self._clock:09d}Z", stream, piece))
            self.output.add(job, attempt, stream, piece)
        self.logs.append_frames(JobKey(1, job, attempt), frames)

    def act(self, act: str, choice: int) -> None:
        """Let something happen beside the jobs."""
        job = JOBS[choice % len(JOBS)]
        if act == "read":
            self._read_on(choice)
        elif act in self._readers:
            self._readers[act].read(self, choice)
        elif act == "page":
            self._indexes.read_page(Selection(1, parse_id("1")), choice, 3)
        elif act == "count":
            self.metrics.count_reports(1)
        elif act == "save":
            self.metrics.save()
        elif act in ("kill", "tear"):
            if act == "tear" and self.logs.log_size(1):
                with (self._folder / "1.log").open("ab") as file:
                    file.write(b"1 master 1 2026-08-31T07:23:46.000000001Z tor")
            self._start_server()
            self.logs.find_cursor(JobKey(1, job, 1))  # a follower continues, and the file is mended
        elif act == "attempt" and job in self._printed:
            self._attempts[job] += 1
            self._printed.discard(job)
        elif act == "finish":
            self.output.end_attempt(job, self._attempts[job])
            self.logs.finish_job(JobKey(1, job, self._attempts[job]))

    def _read_on(self, choice: int) -> None:
        """Read to the end: from where the reader is, or from the end of an earlier line, as a cursor has it."""
        if choice % 2 and self._ends:
            kept = choice % (len(self._ends) + 1)
            del self._ends[kept:], self._read[kept:]
            end = self._ends[-1] if self._ends else ReadPosition()
            cursor = str(StreamPosition().with_log_position(end))
            (position,) = parse_stream_cursor(cursor, 1)
            check_stream_cursor(cursor, [(1, position)], self.logs)
            self._position = position.log_position
        while True:
            blocks, following = self.logs.read_blocks(1, self._position)
            lines = [line for block in blocks for line in block.lines()]
            self._read += [(line.job, line.stream, line.text) for line in lines]
            self._ends += [line.end for line in lines]
            if following == self._position:
                return
            self._position = following

    async def stream(self, cursor: str, *, batch: bool) -> list[dict[str, Any]]:
        """Return the entries after a cursor."""
        positions = parse_stream_cursor(cursor, 1)
        request = StreamRequest(parse_id("1"), (1,), follow=False, positions=positions, batch=batch, reports=not batch)
        pieces = [piece async for piece in stream_entries(request, self._experiments, self.logs, Notifier())]
        found = [json.loads(line) for piece in pieces for line in piece.splitlines()]
        return [entry for entry in found if entry["type"] != "end"]

    def check(self, choice: int) -> None:
        """Compare what all readers have with what jobs have printed."""
        shown = self.output.shown(*JOBS)
        self._read_on(choice)
        assert self._read == shown, "a reader of the store"
        for batch, reader in enumerate(self._readers.values()):
            reader.read(self, choice % 4)
            expected = [one for line in self.output.lines for one in line.entries(reports=not batch)]
            assert reader.list_lines() == expected, "a client of the stream"
        self._check_page(choice)
        for job, attempt in self._attempts.items():
            lines = [line for line in self.output.lines if (line.job, line.attempt) == (job, attempt)]
            last = [text for line in lines if (text := line.split()[0]) is not None]
            found = [line.text for line in self.logs.read_last_lines(JobKey(1, job, attempt), 2)]
            assert found == last[-2:], "the last lines of a job"
        for metric in PATTERNS:
            values = [value for line in self.output.lines for value in line.values(metric)]
            assert list(self._list_values(metric)) == values, metric
            summary = self.metrics.read_summaries([1]).get(1, {}).get(metric)
            assert (0 if summary is None else summary.count) == len(values), metric

    def _check_page(self, choice: int) -> None:
        for name, jobs in (("1", JOBS), ("1.worker.1", JOBS[1:2])):
            lines = self.output.shown(*jobs)
            first = choice % (len(lines) + 1)
            total, page = self._indexes.read_page(Selection(1, parse_id(name)), first, 5)
            assert total == len(lines)
            found = [(one.number, one.line.job, one.line.stream, one.line.text) for one in page]
            expected = [(first + at, *line) for at, line in enumerate(lines[first : first + 5])]
            assert found == expected[: len(found)]
            assert len(found) == len(expected) or sum(len(one[3]) for one in found) > 2**21

    def _list_values(self, metric: str) -> Iterator[float]:
        after, complete = ReadPosition(), False
        while not complete:
            page = self.metrics.read_values(1, metric, after)
            yield from (one.value for one in page.values)
            after, complete = page.end, page.complete


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path_factory.mktemp('whole')}/riseml.db")
    experiments = ExperimentStore(made)
    before = submit(experiments)
    jobs = tuple(replace(job, state=State.RUNNING, started_at=NOW) for job in before.jobs)
    assert experiments.save_decision(before, replace(before, state=State.RUNNING, jobs=jobs), NOW)
    yield made
    made.close()


@pytest.fixture(scope="module")
def search() -> Iterator[PatternSearch]:
    made = PatternSearch()
    yield made
    made.close()


NUMBERS = st.integers(0, 2 * len(PIECES) - 4)  # long pieces once, the others twice
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(JOBS), st.sampled_from([1, 1, 2]), st.lists(NUMBERS, min_size=1, max_size=3)),
        st.tuples(st.sampled_from(ACTS), st.integers(0, 20)),
    ),
    min_size=4,
    max_size=30,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(steps=STEPS, at_once=st.sampled_from([1, 200, 5_000, 1 << 18]), last=st.integers(0, 20))
def test_every_reader_gets_each_line_whole_and_once_and_every_value(
    tmp_path_factory: pytest.TempPathFactory,
    database: Database,
    search: PatternSearch,
    steps: list[Any],
    at_once: int,
    last: int,
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("riseml.store.logs.log_store._READ_AT_ONCE", at_once)
        patch.setattr("riseml.store.logs.log_store._NEAR_END", 300)
        patch.setattr("riseml.store.logs.line_index._STEP", 3)
        world = World(folder, database, search)
        world.metrics._rows.delete_tally(1)
        for step in steps:
            if len(step) == 2:
                world.act(*step)
            else:
                job, stream, numbers = step
                world.print(job, stream, [PIECES[number % len(PIECES)] for number in numbers])
        world.check(last)
    shutil.rmtree(folder)
