"""What each kind of action says, needs and reaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName, JobName
from riseml.control.actions import (
    Action,
    CancelData,
    CancelImage,
    CancelRestore,
    CopyData,
    CopyImage,
    EnsureImage,
    FetchData,
    InheritOutput,
    NeedsRecord,
    Performer,
    PrepareHost,
    ReleaseHost,
    RemoveJob,
    RestoreOutput,
    SaveOutput,
    Signal,
    StartGang,
    StartJob,
    StopJob,
)
from riseml.model import JobKey

GPU1, GPU2 = HostName("gpu1"), HostName("gpu2")
WORKER = JobKey(4, JobName("worker.1"), 1)
AGAIN = JobKey(4, JobName("worker.1"), 2)
SENTENCES: dict[Action, tuple[str, str]] = {  # what it does, and what it has done
    EnsureImage(GPU1, 4, "tf:2"): ("build or fetch environment tf:2 of 4 on gpu1", "environment tf:2 made on gpu1"),
    CopyImage(GPU2, 4, "tf:2", GPU1): (
        "copy environment tf:2 of 4 from gpu1 to gpu2",
        "environment tf:2 copied from gpu1 to gpu2",
    ),
    CancelImage(GPU1, 4, "tf:2"): ("cancel environment tf:2 of 4 on gpu1", "environment tf:2 cancelled on gpu1"),
    FetchData(GPU1, 4): ("fetch the data of 4", "has its data"),
    CopyData(GPU1, 4): ("copy the data of 4 to gpu1", "has its data on gpu1"),
    CancelData(GPU1, 4): ("cancel the fetch of the data of 4", "needs its data no longer"),
    SaveOutput(GPU1, 4, 0): ("save the output of 4", "has its output saved"),
    InheritOutput(GPU1, 4, 3): (
        "copy the files of trial 3 into the output of 4 on gpu1",
        "has the files of trial 3 on gpu1",
    ),
    RestoreOutput(GPU1, 4, 2): (
        "restore the output of 4 on gpu1 for attempt 2",
        "has its output for attempt 2 on gpu1",
    ),
    CancelRestore(GPU1, 4): ("cancel the restoration of the output of 4 on gpu1", "needs its output on gpu1 no longer"),
    PrepareHost(GPU1, 4, "10.213.0.0/26"): (
        "prepare gpu1 for 4 with network 10.213.0.0/26",
        "prepared on gpu1 with network 10.213.0.0/26",
    ),
    PrepareHost(GPU1, 4, None): ("prepare gpu1 for 4", "prepared on gpu1"),
    StartJob(GPU1, WORKER): ("start 4.worker.1 on gpu1", "started on gpu1"),
    StartGang(GPU1, 4, 1): ("hand 4 over to gpu1", "handed over to gpu1"),
    StartGang(GPU1, 4, 2): ("hand 4 (attempt 2) over to gpu1", "handed over to gpu1"),
    StartJob(GPU1, AGAIN): ("start 4.worker.1 (attempt 2) on gpu1", "started on gpu1"),
    StopJob(GPU1, WORKER, Signal.TERM): ("send SIGTERM to 4.worker.1 on gpu1", "got SIGTERM on gpu1"),
    RemoveJob(GPU1, WORKER): ("remove 4.worker.1 from gpu1", "removed from gpu1"),
    ReleaseHost(GPU1, 4): ("release gpu1 from 4", "released on gpu1"),
}


@pytest.mark.parametrize("action", SENTENCES, ids=str)
def test_every_action_says_what_it_does_and_what_it_has_done(action: Action) -> None:
    assert (str(action), action.describe_done()) == SENTENCES[action]
    assert action.describe() == str(action)
    assert action.owner == 4


def list_kinds(base: type[Action] = Action) -> Iterator[type[Action]]:
    """Yield every class of actions of which there can be objects."""
    for kind in base.__subclasses__():
        yield from list_kinds(kind)
        if kind.__name__ not in ("ExperimentAction", "JobAction"):
            yield kind


def test_there_is_a_sentence_for_every_kind_of_action() -> None:
    assert {kind.__name__ for kind in list_kinds()} == {type(action).__name__ for action in SENTENCES}


def test_an_action_can_name_the_experiment_as_its_user_does() -> None:
    assert StartJob(GPU1, WORKER).describe("paul.144.1") == "start paul.144.1.worker.1 on gpu1"
    assert ReleaseHost(GPU1, 4).describe("144.1") == "release gpu1 from 144.1"


NEEDING_RECORDS = [action for action in SENTENCES if isinstance(action, NeedsRecord)]


@pytest.mark.parametrize("action", NEEDING_RECORDS, ids=str)
def test_an_action_that_needs_a_record_is_refused_for_good_without_one(action: Action) -> None:
    nothing = cast(Performer, object())  # a call of any method would be an AttributeError
    with pytest.raises(EngineError) as refusal:
        action.perform(nothing, None)
    assert refusal.value.message == f"cannot {action}: the experiment is not in the store"
    assert refusal.value.permanent


def test_the_fault_points_of_actions_are_those_that_the_chaos_table_orders() -> None:
    points = {
        kind.__name__: [point and point.value for point in (kind.point_before, kind.point_after, kind.point_noted)]
        for kind in list_kinds()
    }
    assert {name: names for name, names in points.items() if any(names)} == {
        "EnsureImage": ["P15", None, None],
        "StartJob": ["P3", "P4", "P5"],
        "StartGang": ["P3", "P4", "P5"],
        "StopJob": [None, "P9", None],
        "RemoveJob": ["P10", None, None],
        "ReleaseHost": ["P11", "P12", None],
    }
