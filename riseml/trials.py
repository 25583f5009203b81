"""The frozen records of a search: the points that it has tried, and their results. No I/O."""

from __future__ import annotations

import enum

from riseml.records import dataclass
from riseml.spec.config.types import EnvVariable, Goal, Parameter, SearchSection
from riseml.states import Wanted

MOST_TRIALS = 1_000  # of one set

Point = tuple[tuple[str, str], ...]
"""The value of each parameter as jobs get it, in the order of riseml.yml."""


class TrialOutcome(enum.Enum):
    """The result of a trial as its search has it."""

    COMPLETE = "COMPLETE"  # it ended well, and reported the metric
    STOPPED = "STOPPED"  # it was stopped early, and had reported the metric
    FAILED = "FAILED"  # it failed or was killed, or reported no metric


class SearchEnd(enum.Enum):
    """Why a search makes no further trials; `END_SENTENCES` has the sentence that users read."""

    COMPLETED = "COMPLETED"
    EXHAUSTED = "EXHAUSTED"
    TOO_MANY_FAILED = "TOO_MANY_FAILED"
    KILLED = "KILLED"
    BROKEN = "BROKEN"


END_SENTENCES: dict[SearchEnd, str] = {
    SearchEnd.COMPLETED: "all trials have ended",
    SearchEnd.EXHAUSTED: "every combination of the parameters was tried",
    SearchEnd.TOO_MANY_FAILED: "more trials failed than search.max_failed allows",
    SearchEnd.KILLED: "killed by a user",
    SearchEnd.BROKEN: "riseml itself failed to choose a point; see the server's log",
}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search does, as it was submitted."""

    search: SearchSection  # its seed is set
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One point that a search tries, with its experiment."""

    number: int  # within its set, from 1; the experiment has it as `sub`
    experiment: int  # id of the record
    point: Point
    asked_after: int  # trials of the set whose results the search had when this one was made
    placed: bool = False  # its experiment has or had a place
    closed: bool = False  # its experiment has ended, and its whole log is stored
    finished: bool = False  # its experiment ended well
    stopped: bool = False  # the search has decided to stop it early
    stopped_early: bool = False  # its experiment ended because of that: it had not ended well before
    reached: tuple[tuple[int, float], ...] = ()  # steps at which the search compared it, and its values there
    outcome: TrialOutcome | None = None  # None: the search has no result yet
    # the position of its result in the order in which the search got the results, from 1
    told: int | None = None  # names: of the stored record
    # the best value of the metric; None: the search has no result yet, or no value was reported
    value: float | None = None
    message: str = ""  # why it counts as failed


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """A set whose points a search chooses, as the server last saved it."""

    id: int  # key of the set in the store
    user: str
    number: int  # of the set
    plan: SearchPlan
    concurrency: int  # trials at the same time
    wanted: Wanted  # names: of the stored record
    most_trials: int  # grows when the user adds trials
    trials: tuple[Trial, ...] = ()  # by number
    end: SearchEnd | None = None  # None: it goes on
    variables: tuple[EnvVariable, ...] = ()  # `train.env`: what the trials get, without the caller's values

    @property
    def live(self) -> tuple[Trial, ...]:
        """The trials whose results the search does not have yet."""
        return tuple(trial for trial in self.trials if trial.outcome is None)

    def count(self, outcome: TrialOutcome) -> int:
        """Return how many trials have this outcome."""
        return sum(trial.outcome is outcome for trial in self.trials)

    def find_best(self) -> Trial | None:
        """Return the trial with the best value, the first of several; None while the search has no result."""
        good = [trial for trial in self.trials if trial.value is not None and trial.outcome is not TrialOutcome.FAILED]
        sign = -1.0 if self.plan.search.goal is Goal.MAXIMIZE else 1.0
        return min(good, key=lambda trial: sign * (trial.value or 0.0), default=None)
