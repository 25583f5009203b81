"""Actions in plain words, as the log of decisions prints them."""

from __future__ import annotations

from typing import get_args

import pytest

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
    PrepareHost,
    ReleaseHost,
    RemoveJob,
    RestoreOutput,
    SaveOutput,
    Signal,
    StartGang,
    StartJob,
    StopJob,
    owner_of,
)
from riseml.model import JobKey

GPU1, GPU2 = HostName("gpu1"), HostName("gpu2")
WORKER = JobKey(4, JobName("worker.1"), 1)
AGAIN = JobKey(4, JobName("worker.1"), 2)
SENTENCES: dict[Action, str] = {
    EnsureImage(GPU1, 4, "tf:2"): "build or fetch environment tf:2 of 4 on gpu1",
    CopyImage(GPU2, 4, "tf:2", GPU1): "copy environment tf:2 of 4 from gpu1 to gpu2",
    CancelImage(GPU1, 4, "tf:2"): "cancel environment tf:2 of 4 on gpu1",
    FetchData(GPU1, 4): "fetch the data of 4",
    CopyData(GPU1, 4): "copy the data of 4 to gpu1",
    CancelData(GPU1, 4): "cancel the fetch of the data of 4",
    SaveOutput(GPU1, 4, 0): "save the output of 4",
    RestoreOutput(GPU1, 4, 2): "restore the output of 4 on gpu1 for attempt 2",
    CancelRestore(GPU1, 4): "cancel the restoration of the output of 4 on gpu1",
    PrepareHost(GPU1, 4, "10.213.0.0/26"): "prepare gpu1 for 4 with network 10.213.0.0/26",
    PrepareHost(GPU1, 4, None): "prepare gpu1 for 4",
    StartJob(GPU1, WORKER): "start 4.worker.1 on gpu1",
    StartGang(GPU1, 4, 1): "hand 4 over to gpu1",
    StartGang(GPU1, 4, 2): "hand 4 (attempt 2) over to gpu1",
    StartJob(GPU1, AGAIN): "start 4.worker.1 (attempt 2) on gpu1",
    StopJob(GPU1, WORKER, Signal.TERM): "send SIGTERM to 4.worker.1 on gpu1",
    RemoveJob(GPU1, WORKER): "remove 4.worker.1 from gpu1",
    ReleaseHost(GPU1, 4): "release gpu1 from 4",
}


@pytest.mark.parametrize("action", SENTENCES, ids=SENTENCES.get)
def test_every_action_says_what_it_does(action: Action) -> None:
    assert str(action) == action.describe() == SENTENCES[action]
    assert owner_of(action) == 4


def test_there_is_a_sentence_for_every_kind_of_action() -> None:
    assert {type(action) for action in SENTENCES} == set(get_args(Action))


def test_an_action_can_name_the_experiment_as_its_user_does() -> None:
    assert StartJob(GPU1, WORKER).describe("paul.144.1") == "start paul.144.1.worker.1 on gpu1"
    assert ReleaseHost(GPU1, 4).describe("144.1") == "release gpu1 from 144.1"
