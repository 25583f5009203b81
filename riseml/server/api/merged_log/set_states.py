"""The changes of state of a whole set, as the merged stream sends them between the entries of its members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from riseml import wire
from riseml.base.records import dataclass
from riseml.base.states import SENTENCES, TERMINAL, Reason, State
from riseml.control.rollup import describe_set_end, roll_up_set
from riseml.server.api.merged_log.log_entries import format_moment
from riseml.store.experiments import ExperimentStore, StateEvent

_SET_STATES = (State.CREATED, State.BUILDING, State.PENDING, State.STARTING, State.RUNNING)
"""States of a set in the stream. A set never goes back from one of them, for example while one member ends and another
waits."""


class SetStates:
    """Follows the state of a set through the events of its members, in the order in which the stream sends them.

    Args:
        name: of the set for the user of the request.
        members: keys of its experiments in the store.

    Example:
        states = SetStates("144", (7, 8))
        entry = states.note_event(7, event)  # None while the set stays in its state
    """

    def __init__(self, name: str, members: Iterable[int]) -> None:
        self._name = name
        self._members = dict.fromkeys(members, _MemberState())
        self._counts = Counter(member.state for member in self._members.values())
        self._state: State | None = None  # the last state that was sent; None: no state was sent
        self._last: datetime | None = None  # when the last event happened
        self.goes_on = False  # a search may make further members
        self.failure: Reason | None = None  # why its search has failed; None: it has not, or goes on

    def add_member(self, member: int) -> None:
        """Take a member that a search has made."""
        if member not in self._members:
            self._members[member] = _MemberState()
            self._counts[State.CREATED] += 1

    def note_end(self) -> wire.StateEntry | None:
        """Return the entry of a set whose search makes no further members, unless its end was sent before."""
        self.goes_on = False
        return None if self._last is None else self._tell_change(self._last)

    def note_event(self, member: int, event: StateEvent) -> wire.StateEntry | None:
        """Take an event of a member. Return the entry of the set without its cursor, if the set changes its state."""
        if event.job is not None:
            return None
        self._last = event.at
        before = self._members[member]
        has_run = event.state in (State.RUNNING, State.FINISHED)  # a short job ends before the server sees it run
        started_at = before.started_at or (event.at if has_run else None)
        self._members[member] = replace(before, state=event.state, reason=event.reason, started_at=started_at)
        if not self._recount(before.state, event.state) and self._state is not None:
            return None
        return self._tell_change(event.at)

    def _tell_change(self, moment: datetime) -> wire.StateEntry | None:
        """Return the entry of the set, if the state from its members differs from the one that was sent."""
        members = tuple(self._members.values())
        state, reason = roll_up_set(members, goes_on=self.goes_on, failure=self.failure)
        if state is self._state or (state not in TERMINAL and self._state in _SET_STATES[_SET_STATES.index(state) :]):
            return None
        self._state = state
        reason = Reason.RUNNING if state is State.RUNNING else reason
        return {
            "type": "state",
            "cursor": "",
            "id": self._name,
            "time": format_moment(moment),
            "state": state.value,
            "reason": reason.value,
            "sentence": SENTENCES[reason],
            "message": describe_set_end(members),
            "exit_code": None,
        }

    def _recount(self, before: State, after: State) -> bool:
        """Count a member that changed its state. Return True when the set of present states has changed."""
        self._counts[before] -= 1
        self._counts[after] += 1
        return self._counts[before] == 0 or self._counts[after] == 1


def load_set_states(name: str, sent: Mapping[int, int], store: ExperimentStore, *, goes_on: bool = False) -> SetStates:
    """Return the state of a set as a stream has sent it so far.

    Args:
        number: of the set.
        sent: the id of the last event that was sent, by key of each member in the store.
        store: has the events.
        goes_on: a search made the members one after the other.
    """
    states = SetStates(name, sent)
    states.goes_on = goes_on
    for member, last in sent.items():
        for event in store.read_events(member, 0) if last else ():
            if event.id <= last:
                states.note_event(member, event)
    return states


@dataclass(frozen=True, slots=True)
class _MemberState:
    """The state of one member as the stream has sent it."""

    state: State = State.CREATED
    reason: Reason = Reason.SUBMITTED
    started_at: datetime | None = None
