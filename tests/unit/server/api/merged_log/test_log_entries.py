"""What the entries of a set's log say of its members."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from riseml.base.names import JobName, parse_id
from riseml.base.states import Reason, State
from riseml.model import Verdict
from riseml.server.api.merged_log.log_entries import end_entry, state_entry
from riseml.store.experiments import StateEvent
from tests.unit.control.simulation import make_experiment, make_plan

NOW = datetime(2026, 8, 31, tzinfo=UTC)
PLAN = replace(make_plan("train"), parameters=(("lr", "0.1"), ("layers", "2")))


def test_a_member_of_a_set_names_its_parameters_where_it_begins() -> None:
    member = replace(make_experiment(1, PLAN, set_id=1), sub=3)
    alone = replace(member, sub=None)
    begun = StateEvent(1, None, 1, NOW, State.CREATED, Reason.SUBMITTED, "", None)
    runs = replace(begun, state=State.RUNNING, reason=Reason.RUNNING)
    assert state_entry(member, begun, "")["message"] == "lr=0.1, layers=2"
    assert state_entry(member, runs, "")["message"] == "lr=0.1, layers=2"
    assert state_entry(member, replace(runs, job=JobName("train")), "")["message"] == ""
    assert state_entry(member, replace(runs, state=State.FINISHED), "")["message"] == ""
    assert state_entry(alone, runs, "")["message"] == "", "its parameters are those of the only point"


def test_the_end_of_a_failed_set_has_the_cause_of_one_member() -> None:
    member = replace(make_experiment(1, PLAN, set_id=1), state=State.FAILED, reason=Reason.EXIT_CODE, number=144)
    failed = replace(member.jobs[-1], state=State.FAILED, exit_code=7)
    verdict = Verdict(State.FAILED, Reason.EXIT_CODE, NOW, failed.name)
    members = tuple(replace(member, sub=sub, verdict=verdict, jobs=(failed,)) for sub in (1, 2))
    end = end_entry(parse_id("144"), members, "")
    assert (end["cause"], end["exit_code"], end["message"]) == ("1.train", 7, "0 of 2 finished, 2 failed")
    mixed = end_entry(parse_id("144"), (replace(members[0], state=State.FINISHED), members[1]), "")
    assert (mixed["cause"], mixed["exit_code"]) == (None, None)
