"""The changes of state of a set in its merged stream, and the order of its lines."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from riseml.base.names import JobName, parse_id
from riseml.base.states import Reason, State
from riseml.model import Frame, JobKey, Owner
from riseml.planning.plan import first_jobs
from riseml.server.api.merged_log.log_stream import stream_entries
from riseml.server.api.merged_log.stream_cursor import parse_stream_cursor
from riseml.server.api.merged_log.stream_request import StreamRequest
from riseml.store.insertion import NewExperiments
from riseml.store.logs.log_store import _READ_AT_ONCE
from tests.unit.control.simulation import make_plan
from tests.unit.server.api.merged_log.scene import BEGUN, JOBS, Scene, at, parse, shown


class SetScene(Scene):
    """A set of two experiments, whose logs are longer than what is read at once, which is 256 KiB."""

    LINES = 500
    FILLER = "x" * 900

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        plans = [make_plan(*JOBS), make_plan(*JOBS)]
        pairs = tuple((plan, first_jobs(plan)) for plan in plans)
        self.experiments.add_experiments(NewExperiments(Owner("paul", 1, 1), "p", "", "", pairs, concurrency=2), BEGUN)
        assert self.LINES * len(self.FILLER) > 1.5 * _READ_AT_ONCE
        for member, shift in ((2, 0.0), (3, 0.05)):
            frames = [
                Frame(f"{at(number / 2 + shift):%Y-%m-%dT%H:%M:%S.%f}000Z", 1, f"{number} {self.FILLER}\n".encode())
                for number in range(self.LINES)
            ]
            self.logs.append_frames(JobKey(member, JobName("master"), 1), frames)

    def read_set(self, cursor: str = "", *, batch: bool = False) -> list[dict[str, Any]]:
        async def run() -> list[dict[str, Any]]:
            positions = parse_stream_cursor(cursor, 2)
            request = StreamRequest(parse_id("2"), (2, 3), follow=False, positions=positions, batch=batch)
            stream = stream_entries(request, self.experiments, self.logs, self.notifier)
            return [entry async for piece in stream for entry in parse(piece)]

        return asyncio.run(run())


@pytest.mark.parametrize("batch", [False, True])
def test_the_log_of_a_set_is_in_the_order_of_time(tmp_path: Path, *, batch: bool) -> None:
    scene = SetScene(tmp_path)
    entries = scene.read_set(batch=batch)
    times = [time for entry in entries for time in times_of(entry)]
    assert times == sorted(times)
    words = [word for word in shown(entries) if "state" not in word]
    assert len(words) == len(set(words)) == 2 * scene.LINES
    for number in (0, 2, 7, len(entries) // 2, len(entries) - 1):
        assert shown(scene.read_set(entries[number]["cursor"], batch=batch)) == shown(entries[number + 1 :])


def times_of(entry: dict[str, Any]) -> list[str]:
    """Return the time of an entry, or the times of its lines."""
    if entry["type"] == "lines":
        return [row.partition(" ")[0] for row in entry["text"].removesuffix("\n").split("\n")]
    return [entry["time"]]


def test_the_log_of_a_set_tells_its_own_changes_of_state(tmp_path: Path) -> None:
    scene = SetScene(tmp_path)
    history = (
        (2, State.BUILDING, 400),
        (3, State.BUILDING, 401),
        (2, State.STARTING, 401.1),
        (2, State.PENDING, 401.2),  # for another attempt: the set does not go back
        (3, State.PENDING, 401.3),
        (2, State.RUNNING, 402),
        (3, State.FAILED, 403),
        (2, State.FINISHED, 404),
    )
    for member, state, second in history:
        before = scene.experiments.get_experiment(member).experiment
        after = replace(before, state=state, reason=Reason.COMPLETED)
        assert scene.experiments.save_decision(before, after, at(second))
    entries = scene.read_set()
    changes = [entry for entry in entries if entry["type"] == "state" and entry["id"] == "2"]
    assert [(entry["state"], entry["message"]) for entry in changes] == [
        ("CREATED", ""),
        ("BUILDING", ""),
        ("STARTING", ""),
        ("RUNNING", ""),
        ("FINISHED", "1 of 2 finished, 1 failed"),
    ]
    causes = [entries[entries.index(change) - 1] for change in changes]
    assert [cause["id"] for cause in causes] == ["2.1", "2.1", "2.1", "2.1", "2.1"]
    for change, cause in zip(changes, causes, strict=True):
        assert shown(scene.read_set(change["cursor"])) == shown(entries[entries.index(change) + 1 :])
        assert shown(scene.read_set(cause["cursor"])) == shown(entries[entries.index(cause) :]), "both come again"
