"""Whose turn it is: by priority, then by fairness between users, then first come, first served.

Among equal priority an experiment's turn is the number of its user's older experiments that have not ended: a user's
first one comes before everybody's second, however many somebody else has queued. A turn only ever gets better, so that
nobody is overtaken for ever. Whoever has been told to be next stays next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from riseml.model import Experiment
from riseml.states import TERMINAL, Part, Reason, State


@dataclass(slots=True)
class Sets:
    """How many experiments of each set have a place."""

    going: Counter[int]

    def are_full_for(self, experiment: Experiment) -> bool:
        """True when as many of the experiment's set run as may."""
        return experiment.set_id is not None and self.going[experiment.set_id] >= experiment.concurrency

    def add(self, experiment: Experiment) -> None:
        """Count one that was given its place."""
        if experiment.set_id is not None:
            self.going[experiment.set_id] += 1


def count_sets(experiments: Iterable[Experiment]) -> Sets:
    """The sets as the records have them."""
    return Sets(
        Counter(
            one.set_id
            for one in experiments
            if one.set_id is not None and one.placed_at is not None and one.state not in TERMINAL
        )
    )


def waits(experiment: Experiment) -> bool:
    """True when everything but a place is there."""
    if experiment.placed_at is not None or experiment.verdict is not None or experiment.state in TERMINAL:
        return False
    if experiment.state is State.PENDING:  # it was in the queue before, and so its environment was there
        return True
    return all(job.state is State.FINISHED for job in experiment.jobs if job.part is Part.PREPARES)


def make_queue(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Those that wait for a place, the next one first."""
    ranked = sorted(_rank(experiments), key=lambda pair: pair[0])
    return [experiment for _, experiment in ranked]


Rank = tuple[int, bool, int, int]


def _rank(experiments: Iterable[Experiment]) -> Iterator[tuple[Rank, Experiment]]:
    older: dict[str, dict[int, int]] = {}  # how many, by user and priority
    members: Counter[int] = Counter()
    for experiment in experiments:  # oldest first
        if experiment.state in TERMINAL:
            continue
        priority = experiment.plan.priority
        counts = older.setdefault(experiment.owner.user, {})
        if waits(experiment):
            # only those of at least this priority: what comes behind an experiment must not make its turn worse
            only = len(counts) == 1 and priority in counts
            turn = counts[priority] if only else sum([many for one, many in counts.items() if one >= priority])
            yield (-priority, experiment.reason is not Reason.NEXT, turn, experiment.id), experiment
        if experiment.set_id is not None:  # of a set, only as many count as may run at the same time
            members[experiment.set_id] += 1
            if members[experiment.set_id] > experiment.concurrency:
                continue
        counts[priority] = counts.get(priority, 0) + 1
