"""The next point of a search."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from riseml.model import Point, SearchPlan, Trial, TrialOutcome
from riseml.searches.population import breed_point, choose_parent
from riseml.searches.space import list_points, make_space, name_point, read_point, try_point
from riseml.spec.config.conditions import list_constrained_metrics
from riseml.spec.config.types import Goal, SearchMethod

if TYPE_CHECKING:
    import optuna
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

_MOST_TRIES = 8  # proposals for one trial; when all were tried before, a point is chosen at random
_WITH_VALUE = (TrialOutcome.COMPLETE, TrialOutcome.STOPPED)  # trials that samplers learn from
_MOST_ALLOWED_TRIES = 64  # proposals for one trial of a search with constraints
_MOST_ALLOWED_DRAWS = 5_000  # random points for one trial of a search with constraints
_MOST_DRAWS = 500  # random points for one trial of a space with too many points to list


@functools.cache
def load_optuna() -> Any:
    """Return the package optuna, which writes nothing to the server's log. Its import takes 0.2 s: a server pays for
    it with the first search.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Proposer:
    """Proposes the points of one search. It keeps nothing that the records do not have, except to save time.

    Args:
        plan: of the search.

    Example:
        point = Proposer(record.plan).propose_point(record.trials)
    """

    def __init__(self, plan: SearchPlan) -> None:
        self._plan = plan
        self._known = _KnownStudy(plan)
        self._replay: _Replay | None = None  # the study of `cma-es`, with all results so far

    def propose_point(self, trials: Sequence[Trial]) -> Point | None:
        """Return the point of the next trial; None when every point was tried.

        Args:
            trials: all trials so far, by number.
        """
        plan = self._plan
        number = len(trials) + 1
        if plan.search.method is SearchMethod.GRID:
            points = list_points(plan.parameters, plan.search.constraints)
            return next((point for index, point in enumerate(points or ()) if index == len(trials)), None)
        tried = list_tried(plan, trials)
        if plan.search.method is SearchMethod.PBT:
            return breed_point(plan, trials, number) or self._choose_at_random(trials, number)
        if plan.search.method is SearchMethod.CMA_ES:
            proposed = self._advance(trials).propose(number, tried)
        else:
            proposed = _ask_sampler(self._known.build_study(trials), plan, number, tried)
        return proposed or _find_untried(plan, number, tried)

    def _choose_at_random(self, trials: Sequence[Trial], number: int) -> Point | None:
        """Return a point at random; one that was tried before when there is no other."""
        plan = self._plan
        study = self._known.build_study(trials)
        point = _ask_sampler(study, plan, number, list_tried(plan, trials))
        return point or _find_untried(plan, number, list_tried(plan, trials)) or _find_untried(plan, number, set())

    def _advance(self, trials: Sequence[Trial]) -> _Replay:
        """Return the study of an evolution strategy, which depends on the order of proposals and results."""
        if self._replay is None or not self._replay.follow(trials):
            self._replay = _Replay(self._plan)
            self._replay.follow(trials)
        return self._replay


def find_parent(plan: SearchPlan, trials: Sequence[Trial]) -> Trial | None:
    """Return the trial whose files the next one begins with; None: it begins with nothing.

    Args:
        plan: of the search.
        trials: all trials so far, by number.
    """
    return None if plan.search.pbt is None else choose_parent(plan, trials, len(trials) + 1)


def choose_first_point(plan: SearchPlan) -> Point:
    """Return the point of the first trial.

    Raises:
        LookupError: there is no point at all.
    """
    point = Proposer(plan).propose_point(())
    if point is None:
        raise LookupError("the parameters of the search have no point")
    return point


def derive_seed(plan: SearchPlan, number: int, attempt: int = 0) -> int:
    """Return the seed of one proposal."""
    text = f"{plan.search.seed} {number} {attempt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def _make_sampler(plan: SearchPlan, seed: int) -> BaseSampler:
    samplers = load_optuna().samplers
    independent: BaseSampler = samplers.RandomSampler(seed=seed)
    match plan.search.method:
        case SearchMethod.TPE:
            sampler: BaseSampler = samplers.TPESampler(seed=seed, constant_liar=True, **_list_tpe_options())
        case SearchMethod.CMA_ES:
            sampler = samplers.CmaEsSampler(seed=seed, independent_sampler=independent, warn_independent_sampling=False)
        case _:
            sampler = independent
    return sampler


@functools.cache
def _list_tpe_options() -> dict[str, Any]:
    """Return what lets TPE read by how much trials fail their constraints: Optuna 4 does so only with a function, which
    it never calls here; Optuna 5 does so always.
    """
    return {"constraints_func": lambda _: (0.0,)} if load_optuna().__version__.startswith("4.") else {}


def make_study(plan: SearchPlan, **options: Any) -> optuna.Study:
    """Return an empty study in memory. Its name decides the brackets of hyperband, and is always the same."""
    goals = ["maximize" if goal is Goal.MAXIMIZE else "minimize" for _, goal in plan.search.objectives]
    study: optuna.Study = load_optuna().create_study(study_name="search", directions=goals, **options)
    return study


class _KnownStudy:
    """The trials of a search as Optuna knows them. Most are those of the last proposal, and are not made again."""

    def __init__(self, plan: SearchPlan) -> None:
        self._plan = plan
        self._frozen: dict[int, tuple[Trial, FrozenTrial]] = {}  # by number

    def build_study(self, trials: Sequence[Trial]) -> optuna.Study:
        """Return a study with these trials as far as the method asks for them."""
        if self._plan.search.method is not SearchMethod.TPE:
            return make_study(self._plan)
        from riseml.searches.known_trials import KnownTrials

        space = make_space(self._plan.parameters)
        return make_study(self._plan, storage=KnownTrials([self._freeze_trial(trial, space) for trial in trials]))

    def _freeze_trial(self, trial: Trial, space: dict[str, Any]) -> FrozenTrial:
        earlier, frozen = self._frozen.get(trial.number, (None, None))
        if frozen is None or earlier != trial:
            frozen = freeze_trial(self._plan, trial, space)
            self._frozen[trial.number] = (trial, frozen)
        return frozen


def freeze_trial(plan: SearchPlan, trial: Trial, space: dict[str, Any]) -> FrozenTrial:
    """Return a trial as Optuna knows it."""
    from optuna.trial import TrialState

    from riseml.searches.known_trials import make_frozen_trial

    states = {
        None: TrialState.RUNNING,
        TrialOutcome.COMPLETE: TrialState.COMPLETE,
        TrialOutcome.STOPPED: TrialState.PRUNED,
        TrialOutcome.FAILED: TrialState.FAIL,
    }
    params = read_point(plan.parameters, trial.point)
    values = params, {name: space[name] for name in params}
    is_judged = trial.outcome in _WITH_VALUE
    value = trial.value if is_judged else None
    scores = trial.values if is_judged else ()
    has_limits = is_judged and bool(list_constrained_metrics(plan.parameters, plan.search.constraints))
    excess = trial.excess if has_limits else None
    return make_frozen_trial(
        trial.number - 1, states[trial.outcome], value, values, dict(trial.reached), scores, excess
    )


def find_given(plan: SearchPlan, number: int) -> Point:
    """Return what the user has chosen of the point of a trial; empty: nothing."""
    return plan.search.points[number - 1] if number <= len(plan.search.points) else ()


def list_tried(plan: SearchPlan, trials: Sequence[Trial]) -> set[Point]:
    """Return the points of trials; those that the user has written, as a sampler writes them."""
    count = len(plan.search.points)
    return {trial.point if trial.number > count else name_point(plan.parameters, trial.point) for trial in trials}


def _is_fresh(plan: SearchPlan, point: Point | None, tried: set[Point]) -> bool:
    return point is not None and (point if not plan.search.points else name_point(plan.parameters, point)) not in tried


def _ask_sampler(study: optuna.Study, plan: SearchPlan, number: int, tried: set[Point]) -> Point | None:
    """Return a proposal; None when all were tried before, or are not allowed. Such a proposal stays in the study as a
    trial that runs, from which TPE keeps away.
    """
    space = make_space(plan.parameters)
    user_values = find_given(plan, number)
    for attempt in range(_count_tries(plan)):
        study.sampler = _make_sampler(plan, derive_seed(plan, number, attempt))
        point = try_point(plan, study.ask(space).params, user_values)
        if _is_fresh(plan, point, tried):
            return point
    return None


def _count_tries(plan: SearchPlan) -> int:
    return _MOST_ALLOWED_TRIES if plan.search.constraints else _MOST_TRIES


def _find_untried(plan: SearchPlan, number: int, tried: set[Point]) -> Point | None:
    """Return a point that was not tried, at random but always the same; None when all were tried, or when hundreds of
    random points in a space that is too large to list were.
    """
    points = list_points(plan.parameters, plan.search.constraints)
    if points is None or find_given(plan, number):
        return next((point for point in _draw_points(plan, number) if _is_fresh(plan, point, tried)), None)
    fresh = [point for point in points if point not in tried]
    return fresh[derive_seed(plan, number, _MOST_TRIES) % len(fresh)] if fresh else None


def _draw_points(plan: SearchPlan, number: int) -> Iterator[Point | None]:
    """Yield random points that depend only on the seed of the search and the number of the trial; None for one that is
    not allowed.
    """
    study = make_study(plan)
    space = make_space(plan.parameters)
    user_values = find_given(plan, number)
    study.sampler = load_optuna().samplers.RandomSampler(seed=derive_seed(plan, number, _MOST_TRIES))
    for _ in range(_MOST_ALLOWED_DRAWS if plan.search.constraints else _MOST_DRAWS):
        yield try_point(plan, study.ask(space).params, user_values)


class _Replay:
    """A study whose proposals and results are replayed in the order of the records.

    An evolution strategy moves on with each generation, so that its state is the whole history. The records hold that
    history: which results were known when a trial was made. Any process can replay it.
    """

    def __init__(self, plan: SearchPlan) -> None:
        self._plan = plan
        self._study = make_study(plan)
        self._space = make_space(plan.parameters)
        self._numbers: list[int] = []  # Optuna's number of each trial
        self._last: Point | None = ()  # the newest point; None: no proposal was allowed
        self._told = 0

    def follow(self, trials: Sequence[Trial]) -> bool:
        """Replay what is new in the records. Return False when they do not continue the records that were replayed so
        far."""
        count = len(self._numbers)
        if len(trials) < count or (count and trials[count - 1].point != self._last):
            return False
        order = sorted((trial for trial in trials if trial.told is not None), key=lambda finished: finished.told or 0)
        for trial in trials[len(self._numbers) :]:
            self._add_results(order, trial.asked_after)
            tried = list_tried(self._plan, trials[: len(self._numbers)])
            if self.propose(trial.number, tried) != trial.point:
                self._replace_last(trial)
        self._add_results(order, len(order))
        return True

    def propose(self, number: int, tried: set[Point]) -> Point | None:
        """Return the next proposal; None when no try gave a point that is allowed and was not tried before. The records
        must contain it, or the study is built again.
        """
        user_values = find_given(self._plan, number)
        fixed = read_point(self._plan.parameters, user_values)
        point: Point | None = None
        for attempt in range(_count_tries(self._plan)):
            self._study.sampler = _make_sampler(self._plan, derive_seed(self._plan, number, attempt))
            if fixed:
                self._study.enqueue_trial(fixed)
            optuna_trial = self._study.ask(self._space)
            point = try_point(self._plan, optuna_trial.params, user_values)
            if _is_fresh(self._plan, point, tried):
                break
            self._study.tell(optuna_trial, state=load_optuna().trial.TrialState.FAIL)
            point = None
        self._numbers.append(optuna_trial.number)
        self._last = point
        return point

    def _replace_last(self, trial: Trial) -> None:
        """Replace a proposal by the recorded point: the search had to take another point, or an earlier version of
        Optuna proposed it.
        """
        last = self._numbers.pop()  # `propose` ended it when all its tries gave points that were tried before
        self._study.tell(last, state=load_optuna().trial.TrialState.FAIL, skip_if_finished=True)
        self._study.enqueue_trial(read_point(self._plan.parameters, trial.point))
        self._numbers.append(self._study.ask(self._space).number)
        self._last = trial.point

    def _add_results(self, order: Sequence[Trial], until: int) -> None:
        for trial in order[self._told : until]:
            state = load_optuna().trial.TrialState
            number = self._numbers[trial.number - 1]
            if trial.outcome in _WITH_VALUE and trial.value is not None:
                self._study.tell(number, trial.value)  # its rank in the generation counts, also of a stopped trial
            else:
                self._study.tell(number, state=state.FAIL)
        self._told = max(self._told, until)
