"""The merged stream: in the order of time, whole from any cursor on, the same together as line by line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from riseml.model import Experiment, Frame, JobKey, Owner
from riseml.names import JobName, parse_id
from riseml.planning.plan import first_jobs
from riseml.server.act import Stores
from riseml.server.news import News
from riseml.server.stream import Request, parse_cursor, stream
from riseml.states import Part, Reason, State
from riseml.store.database import Database
from riseml.store.experiments import Experiments, Submitted
from riseml.store.logs import Logs
from riseml.store.snapshots import Snapshots
from tests.control.simulation import make_plan

BEGUN = datetime(2026, 8, 31, 7, 23, 40, tzinfo=UTC)
JOBS = ("master", "worker.1")
DEADLINE = 60.0  # seconds


def at(second: float) -> datetime:
    return BEGUN + timedelta(seconds=second)


class Scene:
    """An experiment with a log, without a server."""

    def __init__(self, folder: Path) -> None:
        experiments = Experiments(Database(f"sqlite:///{folder}/riseml.db"))
        self.stores = Stores(experiments, Logs(folder / "logs"), Snapshots(folder / "snapshots"))
        self.news = News()
        plan = make_plan(*JOBS)
        experiments.add(Submitted(Owner("paul", 1, 1), "p", "", "", ((plan, first_jobs(plan)),)), BEGUN)

    def load(self) -> Experiment:
        return self.stores.experiments.get(1).experiment

    def save(self, state: State, second: float, *, closed: bool = False) -> None:
        """Everything comes into this state."""
        before = self.load()
        jobs = tuple(
            replace(
                job,
                state=State.FINISHED if job.part is Part.PREPARES else state,
                reason=Reason.COMPLETED,
                started_at=at(1),
                ended_at=at(second),
            )
            for job in before.jobs
        )
        after = replace(before, state=state, reason=Reason.COMPLETED, jobs=jobs, closed=closed)
        assert self.stores.experiments.save(before, after, at(second))
        self.news.publish(1)

    def write(self, job: str, *lines: tuple[float, str]) -> None:
        frames = [Frame(f"{at(second):%Y-%m-%dT%H:%M:%S.%f}000Z", 1, f"{text}\n".encode()) for second, text in lines]
        self.stores.logs.append(JobKey(1, JobName(job), 1), frames)
        self.news.publish_lines(1)

    def finish(self, *jobs: str) -> None:
        for job in jobs:
            self.stores.logs.finish(JobKey(1, JobName(job), 1))
        self.news.publish(1)

    def ends(self, **asked: Any) -> bool:
        """Whether a reader who follows comes to the end."""
        return bool(self._follow(DEADLINE, asked)[-1]["type"] == "end")

    def waits(self, **asked: Any) -> bool:
        """Whether a reader who follows does not come to the end."""
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
        """All that is there, or with `follow` all that comes."""
        return asyncio.run(self._read(cursor, asked))

    async def _read(self, cursor: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
        positions = parse_cursor(cursor, 1)
        wanted = parse_id(asked.pop("name", "1"))
        request = Request(wanted, (1,), asked.pop("follow", False), positions, **asked)
        return [entry async for piece in stream(request, self.stores, self.news) for entry in parse(piece)]


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


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.write("master", (2, "one"), (3, "two"), (6, "three"))
    made.write("worker.1", (4, "four"), (7, "a \u2028 b\r"))
    made.save(State.RUNNING, 5)
    return made


@pytest.mark.parametrize("batch", [False, True])
def test_lines_and_states_come_in_the_order_of_their_times(scene: Scene, *, batch: bool) -> None:
    words = shown(scene.read(batch=batch))
    assert words.index("1.master two") < words.index("1 state RUNNING") < words.index("1.master three")
    assert [word for word in words if "state" not in word] == [
        "1.master one",
        "1.master two",
        "1.master three",
        "1.worker.1 four",
        "1.worker.1 a \u2028 b\r",
    ]


def test_together_and_alone_say_the_same(scene: Scene) -> None:
    alone, together = scene.read(), scene.read(batch=True)
    assert shown(alone) == shown(together)
    assert len(together) < len(alone)
    assert together[-1]["cursor"] == alone[-1]["cursor"]


@pytest.mark.parametrize("batch", [False, True])
def test_from_any_cursor_on_nothing_is_lost_or_repeated(scene: Scene, *, batch: bool) -> None:
    scene.stores.logs.append(JobKey(1, JobName("master"), 1), [Frame("2026-08-31T07:23:48Z", 1, b"a long ")])
    scene.write("worker.1", (9, "between"))
    scene.write("master", (8, "line"), (10, "end"))
    entries = scene.read(batch=batch)
    assert shown(entries)[-3:] == ["1.worker.1 between", "1.master a long line", "1.master end"]
    for number, entry in enumerate(entries):
        assert shown(scene.read(entry["cursor"], batch=batch)) == shown(entries[number + 1 :])


@pytest.mark.parametrize("batch", [False, True])
def test_a_tail_is_so_many_lines_and_no_states(scene: Scene, *, batch: bool) -> None:
    scene.save(State.FINISHED, 20)
    whole = [word for word in shown(scene.read()) if "state" not in word]
    for tail in range(7):
        *words, ping = shown(scene.read(batch=batch, tail=tail))
        assert words == whole[max(0, len(whole) - tail) :]
        assert "ping" in ping


@pytest.mark.parametrize("tail", [0, 2])
def test_behind_a_tail_everything_comes(scene: Scene, tail: int) -> None:
    ping = scene.read(tail=tail)[-1]
    scene.write("master", (8, "late"))
    scene.save(State.FINISHED, 20, closed=True)
    rest = shown(scene.read(ping["cursor"], follow=True))
    assert rest[0] == "1.master late"
    assert {"1.master state FINISHED", "1 state FINISHED", "1 end FINISHED"} <= set(rest)


@pytest.mark.parametrize("batch", [False, True])
def test_one_job_and_a_time(scene: Scene, *, batch: bool) -> None:
    assert shown(scene.read(name="1.worker", batch=batch))[-1] == "1.worker.1 a \u2028 b\r"
    assert not any("master" in word for word in shown(scene.read(name="1.worker", batch=batch)))
    words = [word for word in shown(scene.read(since=at(4), batch=batch)) if "state" not in word]
    assert words == ["1.master three", "1.worker.1 four", "1.worker.1 a \u2028 b\r"]


def test_what_comes_later_is_followed_to_the_end(scene: Scene) -> None:
    async def run() -> list[dict[str, Any]]:
        reading = asyncio.create_task(scene._read("", {"follow": True, "batch": True}))
        for number in range(5):
            await asyncio.to_thread(scene.write, "master", (11 + number, f"late {number}"))
        await asyncio.to_thread(scene.save, State.FINISHED, 20, closed=True)
        return await asyncio.wait_for(reading, DEADLINE)

    words = shown(asyncio.run(run()))
    assert [word for word in words if "late" in word] == [f"1.master late {number}" for number in range(5)]
    assert words[-1] == "1 end FINISHED"


def test_the_end_comes_when_all_has_been_said_though_containers_are_still_there(scene: Scene) -> None:
    scene.save(State.FINISHED, 20)
    assert scene.waits(closed=False), "logs are still being read"
    scene.finish("master")
    assert scene.waits(closed=False)
    scene.finish("worker.1")
    assert scene.ends(closed=False)
    assert scene.waits(), "not for who waits until nothing is left"
    scene.save(State.FINISHED, 20, closed=True)
    assert scene.ends()


def test_an_earlier_attempt_is_waited_for(scene: Scene) -> None:
    scene.save(State.FINISHED, 20)
    before = scene.load()
    jobs = tuple(replace(job, attempt=2) if job.name == "master" else job for job in before.jobs)
    assert scene.stores.experiments.save(before, replace(before, jobs=jobs), at(20))
    scene.stores.logs.finish(JobKey(1, JobName("master"), 2))
    scene.finish("worker.1")
    assert scene.waits(closed=False)
    scene.finish("master")
    assert scene.ends(closed=False)
