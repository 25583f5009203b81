"""States and reasons: each reason has one sentence of its own, and members are found by identity."""

from __future__ import annotations

import copy
import pickle

import pytest

from riseml.base.states import PLACED, SENTENCES, TERMINAL, JobDuty, Reason, State


def test_a_reason_has_one_sentence_of_its_own() -> None:
    assert {*SENTENCES} == {*Reason}
    assert len(set(SENTENCES.values())) == len(Reason)
    assert {sentence[-1] for sentence in SENTENCES.values()}.isdisjoint(".\n ")


def test_a_state_that_has_ended_holds_no_place() -> None:
    assert not TERMINAL & PLACED
    assert {State.CREATED, State.BUILDING, State.PENDING} == {*State} - TERMINAL - PLACED


@pytest.mark.parametrize("member", [*State, *JobDuty], ids=str)
def test_a_copy_of_a_member_is_the_member(member: State | JobDuty) -> None:
    """Their hash is that of their identity."""
    copies = (copy.deepcopy(member), pickle.loads(pickle.dumps(member)), type(member)(member.value))
    assert {member} == {*copies}
