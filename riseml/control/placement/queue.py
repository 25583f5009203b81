"""The queue: which experiment gets a place next, and how far one pass has served the queue.

The order is: priority, then fairness between users, then the order of submission. Among experiments of equal priority,
the turn of an experiment is the number of older experiments of its user that have not ended: the first experiment of a
user comes before the second one of any other user, however many experiments that other user has queued. A turn only
ever gets better, so that no experiment waits forever. An experiment with the reason NEXT stays next.

On a team's server the users are compared by the hours that they have used (`control.usage`), before their turns. Every
older experiment of a user that has not ended counts at once as one that has run for an hour, so that a flood of
submissions gains nothing. The order of the experiments of one user is the same under both rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field

from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, JobDuty, Reason, State
from riseml.control.placement.reserve import Reserve
from riseml.control.quotas import QuotaRules, measure_plan
from riseml.control.usage import rate_amounts
from riseml.model import Experiment
from riseml.spec.config.types import Resources

_MOST_TRIES = 2000
"""How many experiments after the head one pass tries to place; the others wait for a later pass."""

_MOST_MISSES = 100
"""How many different gangs may fail to fit in one pass before the pass tries no more."""

ENTRY_HOURS = 1.0
"""Hours for which each open experiment of a user counts on a team's server, before it has run for any time."""

Needs = tuple[Resources, ...]
"""What the jobs of a gang need, in the order of the jobs: equal needs make equal gangs."""


@dataclass(frozen=True, slots=True)
class QueueHead:
    """The first experiment of the queue that could run, but has no room now. No later start may delay it."""

    experiment: Experiment
    reserve: Reserve  # what it leaves for the experiments after it


@dataclass(slots=True)
class SetCounts:
    """How many experiments of each set have a place, and how many could have one."""

    placed: Counter[int]  # by the id of the set
    unplaced: Counter[int] = field(default_factory=Counter)  # whose turn it was in this pass, and which got no place

    def are_full_for(self, experiment: Experiment) -> bool:
        """Return True when as many experiments of the set run as its concurrency allows, or a user has paused it."""
        if experiment.awaits_resume:
            return True
        return experiment.set_id is not None and self.placed[experiment.set_id] >= experiment.concurrency

    def add(self, experiment: Experiment) -> None:
        """Count an experiment that has got its place."""
        if experiment.set_id is not None:
            self.placed[experiment.set_id] += 1

    def note_unplaced(self, experiment: Experiment) -> bool:
        """Count an experiment that has got no place. Return True when it would have to wait for others of its set also
        if those before it had got theirs.
        """
        if experiment.set_id is None:
            return False
        self.unplaced[experiment.set_id] += 1
        return self.placed[experiment.set_id] + self.unplaced[experiment.set_id] > experiment.concurrency


class QueueProgress:
    """How far one pass has served the queue: the places of each set, and which gangs did not fit.

    A gang that did not fit is not tried again in the same pass: the free resources only shrink. Behind the head, the
    number of tries is limited, so that a pass over a long queue stays short.
    """

    def __init__(self, experiments: Iterable[Experiment]) -> None:
        self.sets = count_sets(experiments)
        self._tries_behind_head = 0
        self._misses: set[Needs] = set()
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """True when this pass places no further experiment."""
        return self._is_over

    def may_try(self, needs: Needs, *, behind_head: bool) -> bool:
        """Return True when a gang with these needs is worth a search; counts the tries after the head."""
        if behind_head:
            self._tries_behind_head += 1
            self._is_over = self._tries_behind_head > _MOST_TRIES or len(self._misses) > _MOST_MISSES
        return not self._is_over and needs not in self._misses

    def note_miss(self, needs: Needs) -> None:
        """Note that a gang with these needs did not fit."""
        self._misses.add(needs)


def count_sets(experiments: Iterable[Experiment]) -> SetCounts:
    """Return how many experiments of each set have a place according to the records."""
    return SetCounts(
        Counter(
            member.set_id
            for member in experiments
            if member.set_id is not None and member.placed_at is not None and member.state not in TERMINAL
        )
    )


def waits_for_place(experiment: Experiment) -> bool:
    """Return True when an experiment lacks only its place."""
    if experiment.placed_at is not None or experiment.verdict is not None or experiment.state in TERMINAL:
        return False
    if experiment.awaits_others:
        return False
    if experiment.state is State.PENDING:  # it was in the queue before, so its environment was ready
        return True
    return all(job.state is State.FINISHED for job in experiment.jobs if job.part is JobDuty.PREPARES)


def make_queue(experiments: Iterable[Experiment], team: QuotaRules | None = None) -> list[Experiment]:
    """Return the experiments that wait for a place, the next one first.

    Args:
        experiments: the open ones, oldest first.
        team: what a team's server knows about its users; None: the server has one user.
    """
    if team is None:
        return [experiment for _, experiment in sorted(_rank_waiting(experiments), key=lambda pair: pair[0])]
    experiments = tuple(experiments)
    hours = {experiment.id: hours for hours, experiment in _count_hours_ahead(experiments, team)}
    ranked = [
        ((*rank[:2], hours[experiment.id], *rank[2:]), experiment) for rank, experiment in _rank_waiting(experiments)
    ]
    ranked.sort(key=lambda pair: pair[0])
    return [experiment for _, experiment in ranked]


QueueRank = tuple[int, bool, int, int]
"""Priority (negative), whether it lacks the reason NEXT, turn, id: the smallest rank comes first."""


def _count_hours_ahead(experiments: Iterable[Experiment], team: QuotaRules) -> Iterator[tuple[float, Experiment]]:
    """Yield how many hours the user of each waiting experiment has used, with an hour for each older experiment of that
    user, and divided by the weight of its project."""
    older: dict[str, dict[int, float]] = {}  # hours of older experiments by user and priority
    members: Counter[int] = Counter()
    for experiment in experiments:  # oldest first
        if experiment.state in TERMINAL or experiment.awaits_others:
            continue
        user = experiment.owner.user
        priority = experiment.plan.policy.priority
        levels = older.setdefault(user, {})
        if waits_for_place(experiment):
            ahead = sum([hours for level, hours in levels.items() if level >= priority])
            used = team.usage.get(user, 0.0)
            yield (used + ahead) / team.quotas.find_weight(experiment.team_project), experiment
        if experiment.set_id is not None:
            members[experiment.set_id] += 1
            if members[experiment.set_id] > experiment.concurrency:
                continue
        levels[priority] = levels.get(priority, 0.0) + ENTRY_HOURS * rate_amounts(measure_plan(experiment.plan))


def _rank_waiting(experiments: Iterable[Experiment]) -> Iterator[tuple[QueueRank, Experiment]]:
    older: dict[str, dict[int, int]] = {}  # number of older experiments by user and priority
    members: Counter[int] = Counter()
    for experiment in experiments:  # oldest first
        if experiment.state in TERMINAL or experiment.awaits_others:
            continue
        priority = experiment.plan.policy.priority
        counts = older.setdefault(experiment.owner.user, {})
        if waits_for_place(experiment):
            # Only experiments of at least this priority count: a later one must not make the turn worse.
            only = len(counts) == 1 and priority in counts
            turn = counts[priority] if only else sum([many for level, many in counts.items() if level >= priority])
            yield (-priority, experiment.reason is not Reason.NEXT, turn, experiment.id), experiment
        if experiment.set_id is not None:  # only as many members of a set count as may run at the same time
            members[experiment.set_id] += 1
            if members[experiment.set_id] > experiment.concurrency:
                continue
        counts[priority] = counts.get(priority, 0) + 1
