"""Notices for webhooks: what people read, what programs read, and a place that is the same whenever it is sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from riseml.base.states import Reason, State
from riseml.server.webhooks.notices import make_end_notice, make_milestone_notice, make_set_notice
from riseml.store.ends import ExperimentEnd
from riseml.store.milestones import Milestone
from tests.unit.control.simulation import make_experiment, make_plan

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
END = ExperimentEnd(
    id=17,
    experiment=9,
    number=4,
    sub=None,
    set_id=None,
    user="paul",
    project="toaster",
    state=State.FAILED,
    reason="EXIT_CODE",
    message="exit code 3",
    started_at=NOW - timedelta(seconds=90),
    ended_at=NOW,
    noticed_at=NOW + timedelta(seconds=5),
)


def test_the_end_of_an_experiment() -> None:
    notice = make_end_notice(END)
    assert (notice.place, notice.experiment, notice.name, notice.at) == ("17", 9, "4", END.noticed_at)
    assert (notice.short, notice.state) == ("FAILED", State.FAILED)
    assert notice.sentence == "experiment 4 of toaster FAILED after 90 s: exit code 3"
    assert notice.document == {
        "event": "experiment.ended",
        "experiment": {
            "id": "4",
            "user": "paul",
            "project": "toaster",
            "state": "FAILED",
            "reason": "EXIT_CODE",
            "message": "exit code 3",
            "started_at": "2026-08-31T07:22:16Z",
            "ended_at": "2026-08-31T07:23:46Z",
        },
    }


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (replace(END, sub=2, message=""), "experiment 4.2 of toaster FAILED after 90 s"),
        (replace(END, started_at=None), "experiment 4 of toaster FAILED: exit code 3"),
        (replace(END, started_at=NOW + timedelta(seconds=9), message=""), "experiment 4 of toaster FAILED after 0 s"),
        (replace(END, started_at=None, message="\x1b[2Ja\n\n b"), "experiment 4 of toaster FAILED: a b"),
    ],
    ids=["of a set", "not started", "a clock that was set back", "foreign text"],
)
def test_a_sentence_says_what_is_known(end: ExperimentEnd, sentence: str) -> None:
    assert make_end_notice(end).sentence == sentence


def test_a_long_message_is_cut() -> None:
    document = make_end_notice(replace(END, message="x" * 5000)).document["experiment"]
    assert isinstance(document, dict)
    assert document["message"] == "x" * 999 + "…"


def test_a_set_ends_as_its_experiments_have() -> None:
    first, second = (
        make_experiment(number, make_plan("train"), state=state, started_at=NOW - timedelta(minutes=number))
        for number, state in ((1, State.FINISHED), (2, State.FAILED))
    )
    members = [replace(first, reason=Reason.COMPLETED), replace(second, reason=Reason.EXIT_CODE)]
    notice = make_set_notice(replace(END, sub=2, set_id=1), members)
    assert (notice.place, notice.name, notice.state) == ("s17", "4", State.FINISHED), "one of them has finished"
    assert notice.sentence.startswith("set 4 of toaster FINISHED: ")
    document = notice.document["experiment"]
    assert isinstance(document, dict)
    assert (document["id"], document["experiments"], document["started_at"]) == ("4", 2, "2026-08-31T07:21:46Z")


@pytest.mark.parametrize(("step", "said"), [(12, "0.96 at step 12"), (None, "0.96")])
def test_a_metric_that_has_reached_a_value(step: int | None, said: str) -> None:
    milestone = Milestone(
        id=3,
        experiment=9,
        number=4,
        sub=1,
        user="paul",
        project="toaster",
        notify=None,
        condition="accuracy > 0.95",
        value=0.96,
        step=step,
        at=NOW,
    )
    notice = make_milestone_notice(milestone)
    assert (notice.place, notice.short, notice.state) == ("m3", "accuracy > 0.95", None)
    assert notice.sentence == f"experiment 4.1 of toaster has reached accuracy > 0.95: {said}"
    assert notice.document["metric"] == {
        "condition": "accuracy > 0.95",
        "value": 0.96,
        "step": step,
        "at": "2026-08-31T07:23:46Z",
    }
