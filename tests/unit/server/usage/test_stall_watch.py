"""Which experiments the server takes for stuck: by what their jobs print, and by what it could see."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty, State
from riseml.diagnosis.verdicts import Certainty, StallCause, StallDiagnosis
from riseml.model import Capacity, Experiment, Frame, HostObservation, JobKey, World
from riseml.server.usage.stall_watch import StallWatch
from riseml.spec.config.types import StallRule, StallSection
from tests.unit.control.simulation import change_policy, make_experiment, make_plan

HOST = HostName("h1")
SEEN = HostObservation(Capacity(8, 8192))
SILENT = replace(SEEN, silent_since=datetime(2026, 8, 31, tzinfo=UTC))


def make_running(stall: StallSection, *jobs: str, attempt: int = 1) -> Experiment:
    """Return an experiment whose jobs run on the host."""
    made = make_experiment(1, change_policy(make_plan(*jobs), stall=stall))
    running = tuple(
        job if job.part is JobDuty.PREPARES else replace(job, state=State.RUNNING, host=HOST, attempt=attempt)
        for job in made.jobs
    )
    return replace(made, state=State.RUNNING, jobs=running)


class Scene:
    """A watch with a clock that the test sets."""

    def __init__(self, experiment: Experiment) -> None:
        self.now = 1000.0
        self.full: set[JobKey] = set()
        self.host = SEEN
        self.experiment = experiment
        self.asked: list[tuple[Mapping[JobName, float], Future[StallDiagnosis]]] = []
        self.watch = StallWatch(self.full.__contains__, self.begin, lambda: self.now)
        self.look()

    def begin(self, experiment: Experiment, silent: Mapping[JobName, float]) -> Future[StallDiagnosis]:
        """Note what the watch wants to know."""
        assert experiment is self.experiment
        self.asked.append((silent, Future()))
        return self.asked[-1][1]

    def answer(self, cause: StallCause, sentence: str = "") -> None:
        """Give the answer that the watch waits for."""
        self.asked[-1][1].set_result(StallDiagnosis(cause, Certainty.LIKELY, sentence, (), (), ()))

    def look(self, seconds: float = 0.0) -> dict[int, str]:
        """Let time pass, and return what the loop gets then."""
        self.now += seconds
        return self.watch.find_stalled(World((self.experiment,)), {HOST: self.host})

    def say(self, job: str, text: str = "step 1\n", stream: int = 1, attempt: int = 1) -> None:
        """Let a job print."""
        self.watch.note_frames(JobKey(1, JobName(job), attempt), [Frame("", stream, text.encode())])

    def count(self) -> int:
        """Return how many stalls there are."""
        return len(self.watch.list_stalls(1))


@pytest.mark.parametrize("rule", StallRule)
def test_a_run_is_stuck_until_its_next_sign_and_the_rule_says_what_the_loop_gets(rule: StallRule) -> None:
    scene = Scene(make_running(StallSection(60.0, rule), "train"))
    for _ in range(5):
        scene.say("train")
        assert scene.look(59) == {}
        assert scene.count() == 0
    scene.look(2)
    told = "no sign of progress for 61 s, after 59 s at most before"
    if rule is not StallRule.REMARK:
        assert scene.count() == 0, "users are told with the cause"
        assert [silent for silent, _ in scene.asked] == [{"train": 61.0}]
        scene.answer(StallCause.BUSY, "it spins")
        told += ": it spins"
    assert scene.look() == ({1: told} if rule in (StallRule.RETRY, StallRule.FAIL) else {})
    assert list(map(str, scene.watch.list_stalls(1))) == [told]
    scene.say("train", "worker.1 is still waiting for worker.2\n")
    scene.say("train", "[riseml: a note of its own]\n", stream=3)
    scene.look()
    assert scene.count() == 1
    scene.say("train")
    assert (scene.look(), scene.count()) == ({}, 0)


def test_jobs_that_are_at_work_are_not_stuck_and_are_looked_at_again_when_the_silence_is_twice_as_long() -> None:
    scene = Scene(make_running(StallSection(60.0, StallRule.FAIL), "train"))
    scene.look(60)
    scene.answer(StallCause.WORKS, "at work")
    for _ in range(5):
        assert scene.look(10) == {}
    assert (len(scene.asked), scene.count()) == (1, 0)
    scene.look(10)
    assert (len(scene.asked), scene.count()) == (2, 0)
    scene.asked[-1][1].set_exception(OSError("the host is away"))
    assert scene.look() == {1: "no sign of progress for 2 m"}, "without a cause it is a stall all the same"


def test_what_the_server_cannot_see_is_no_silence() -> None:
    scene = Scene(make_running(StallSection(60.0, StallRule.FAIL), "train"))
    scene.host = SILENT
    assert scene.look(600) == {}
    scene.host = SEEN
    assert scene.look(59) == {}
    assert not scene.asked
    scene.look(2)
    scene.answer(StallCause.BUSY)
    assert scene.look() != {}
    scene.full.add(JobKey(1, JobName("train"), 1))
    assert scene.look(600) == {}


def test_a_host_that_is_away_for_moments_hides_no_stall() -> None:
    """A loaded engine is late again and again: the answer of a diagnosis must not be lost for that."""
    scene = Scene(make_running(StallSection(60.0, StallRule.DUMP), "train"))
    for _ in range(20):
        scene.host = SEEN
        scene.look(11)
        scene.host = SILENT
        scene.look(4)
    assert len(scene.asked) == 1, "one diagnosis at a time"
    scene.answer(StallCause.BUSY, "it spins")
    for host in (SILENT, SEEN, SILENT):
        scene.host = host
        scene.look(1)
        assert [known.sentence for known in scene.watch.list_stalls(1)] == ["it spins"]


def test_a_diagnosis_that_a_sign_overtakes_is_not_told_and_the_next_one_waits_for_its_end() -> None:
    scene = Scene(make_running(StallSection(60.0, StallRule.FAIL), "train"))
    scene.look(61)
    scene.say("train")
    assert (scene.look(1), scene.look(61)) == ({}, {})
    assert (len(scene.asked), scene.count()) == (1, 0)
    scene.answer(StallCause.BUSY, "it spun before the sign")
    assert (scene.look(1), len(scene.asked), scene.count()) == ({}, 2, 0)
    scene.answer(StallCause.NETWORK, "it reads")
    assert scene.look(1)[1].endswith(": it reads")


def test_another_attempt_begins_with_another_rhythm_and_what_has_ended_has_none() -> None:
    rule = StallSection(60.0, StallRule.FAIL)
    scene = Scene(make_running(rule, "train"))
    scene.look(61)
    scene.answer(StallCause.BUSY)
    assert scene.look() != {}
    scene.experiment = make_running(rule, "train", attempt=2)
    assert scene.look() == {}
    scene.say("train", attempt=1)  # the last lines of the attempt before
    scene.look(61)
    scene.answer(StallCause.BUSY)
    assert scene.look() != {}
    scene.experiment = replace(scene.experiment, state=State.FINISHED)
    assert (scene.look(), scene.count()) == ({}, 0)


def test_a_rank_that_loses_its_rhythm_is_remarked_and_ends_nothing() -> None:
    scene = Scene(make_running(StallSection(None, StallRule.FAIL), "worker.1", "worker.2"))
    for _ in range(200):
        scene.say("worker.1")
        scene.say("worker.2")
        assert scene.look(2) == {}
    for _ in range(200):
        scene.say("worker.1")
        assert scene.look(2) == {}
    scene.answer(StallCause.BUSY, "it spins")
    assert [known.stall.job for known in scene.watch.list_stalls(1)] == ["worker.2"]
    assert scene.look(297) == {}
    scene.look(2)
    scene.answer(StallCause.BUSY, "it spins")
    assert "worker.2 was silent first: it spins" in scene.look()[1]
