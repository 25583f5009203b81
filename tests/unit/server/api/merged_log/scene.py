"""An experiment with a log, without a server, and readers of its merged stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from riseml.base.names import BUILD, JobName, parse_id
from riseml.base.states import JobDuty, Reason, State
from riseml.model import Experiment, Frame, JobKey, Owner
from riseml.planning.plan import first_jobs
from riseml.server.api.merged_log.log_stream import stream_entries
from riseml.server.api.merged_log.stream_cursor import parse_stream_cursor
from riseml.server.api.merged_log.stream_request import StreamRequest
from riseml.server.reconcile.notifier import Notifier
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.logs.log_store import LogStore
from tests.unit.control.simulation import make_plan

BEGUN = datetime(2026, 8, 31, 7, 23, 40, tzinfo=UTC)
JOBS = ("master", "worker.1")
DEADLINE = 60.0  # seconds


def at(second: float) -> datetime:
    return BEGUN + timedelta(seconds=second)


class Scene:
    """An experiment with a log, without a server."""

    def __init__(self, folder: Path) -> None:
        self.experiments = ExperimentStore(Database(f"sqlite:///{folder}/riseml.db"))
        self.logs = LogStore(folder / "logs")
        self.notifier = Notifier()
        plan = make_plan(*JOBS)
        self.logs.finish_job(JobKey(1, BUILD, 1))
        self.experiments.add_experiments(
            NewExperiments(Owner("paul", 1, 1), "p", "", "", ((plan, first_jobs(plan)),)), BEGUN
        )

    def load(self) -> Experiment:
        return self.experiments.get_experiment(1).experiment

    def save(self, state: State, second: float, *, closed: bool = False, reason: Reason = Reason.COMPLETED) -> None:
        """Write that the experiment and all its jobs enter this state."""
        before = self.load()
        jobs = tuple(
            replace(
                job,
                state=State.FINISHED if job.part is JobDuty.PREPARES else state,
                reason=Reason.COMPLETED if job.part is JobDuty.PREPARES else reason,
                started_at=at(1),
                ended_at=at(second),
            )
            for job in before.jobs
        )
        after = replace(before, state=state, reason=reason, jobs=jobs, closed=closed)
        assert self.experiments.save_decision(before, after, at(second))
        self.notifier.publish_records(1)

    def write(self, job: str, *lines: tuple[float, str]) -> None:
        frames = [Frame(f"{at(second):%Y-%m-%dT%H:%M:%S.%f}000Z", 1, f"{text}\n".encode()) for second, text in lines]
        self.logs.append_frames(JobKey(1, JobName(job), 1), frames)
        self.notifier.publish_lines(1)

    def write_pieces(self, job: str, second: float, *texts: str) -> None:
        """Write each line as an engine does whose program writes text and newline separately."""
        frames = [
            Frame(f"{at(second):%Y-%m-%dT%H:%M:%S.%f}000Z", 1, piece.encode())
            for text in texts
            for piece in (text, "\n")
        ]
        self.logs.append_frames(JobKey(1, JobName(job), 1), frames)

    def finish(self, *jobs: str) -> None:
        for job in jobs:
            self.logs.finish_job(JobKey(1, JobName(job), 1))
        self.notifier.publish_records(1)

    def ends(self, **asked: Any) -> bool:
        """True when a reader that follows comes to the end."""
        return bool(self._follow(DEADLINE, asked)[-1]["type"] == "end")

    def waits(self, **asked: Any) -> bool:
        """True when a reader that follows does not come to the end."""
        try:
            self._follow(0.5, asked)
        except TimeoutError:
            return True
        return False

    def _follow(self, seconds: float, asked: dict[str, Any]) -> list[dict[str, Any]]:
        async def run() -> list[dict[str, Any]]:
            return await asyncio.wait_for(self._read("", {"follow": True, **asked}), seconds)

        return asyncio.run(run())

    def read(self, cursor: str = "", **asked: Any) -> list[dict[str, Any]]:
        """Return all entries that are there, or with `follow` all that come."""
        return asyncio.run(self._read(cursor, asked))

    async def _read(self, cursor: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
        positions = parse_stream_cursor(cursor, 1)
        wanted = parse_id(asked.pop("name", "1"))
        request = StreamRequest(wanted, (1,), asked.pop("follow", False), positions, **asked)
        return [
            entry
            async for piece in stream_entries(request, self.experiments, self.logs, self.notifier)
            for entry in parse(piece)
        ]


def parse(piece: bytes) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in piece.splitlines())


def shown(entries: list[dict[str, Any]]) -> list[str]:
    """Each entry, and each line of a batch, as a word."""
    found = []
    for entry in entries:
        if entry["type"] == "lines":
            found += [f"{entry['id']} {row.partition(' ')[2]}" for row in entry["text"].removesuffix("\n").split("\n")]
        elif entry["type"] == "line":
            found.append(f"{entry['id']} {entry['text']}")
        else:
            found.append(f"{entry.get('id')} {entry['type']} {entry.get('state')}")
    return found
