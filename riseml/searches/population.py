"""Population based training: which trial a new one continues, and with which parameters.

Each generation has `population` trials. When all of them have their results, the best trials are the parents of those
that replace the worst ones: each of these begins with the files of a parent (it exploits), and with parameters near
those of the parent (it explores). Every other trial continues its own files with its own parameters.

All of it follows from the trials of the records and from the seed of the search.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence

from riseml.model import Point, SearchPlan, Trial, TrialOutcome
from riseml.searches.quantiles import find_place, find_place_ends, write_number
from riseml.spec.config.conditions import find_ends, is_there, meets_constraints, sort_parameters
from riseml.spec.config.types import Distribution, Goal, Parameter, PopulationRule, Scale
from riseml.spec.scalars.formulas import NoValue

_FACTORS = (0.8, 1.2)  # by which a number is changed
_MOST_TRIES = 64  # changes of one point; when none is allowed, the child has the point of its parent
_CHOICE = "parent"  # distinguishes the seed of this choice from those of the changes


def choose_parent(plan: SearchPlan, trials: Sequence[Trial], number: int) -> Trial | None:
    """Return the trial whose files a new one begins with; None: it begins with nothing.

    Args:
        plan: of a search with a population.
        trials: all trials before the new one, by number.
        number: of the new trial.
    """
    rule = _find_rule(plan)
    size = rule.population
    if number <= size:
        return None
    begin = (number - 1) // size * size
    generations = (trials[start : start + size] for start in range(begin - size, -1, -size))
    # a generation without a result has no parents, and the one before is continued
    members = next((members for members in generations if _rank_trials(plan, members)), ())
    ranked = _rank_trials(plan, members)
    count = max(1, int(size * rule.replace))
    parents = ranked[:count]
    own = next((trial for trial in ranked[: size - count] if trial.number == number - size), None)
    if own is not None:
        return own
    return parents[int(_make_random(plan, number, _CHOICE).random() * len(parents))] if parents else None


def breed_point(plan: SearchPlan, trials: Sequence[Trial], number: int) -> Point | None:
    """Return the parameters of a new trial; None: it has no parent, and its parameters are chosen at random.

    Args:
        plan: of a search with a population.
        trials: all trials before the new one, by number.
        number: of the new trial.
    """
    parent = choose_parent(plan, trials, number)
    if parent is None:
        return None
    if parent.number == number - _find_rule(plan).population:
        return parent.point
    for attempt in range(_MOST_TRIES):
        try:
            point = _change_point(plan, parent.point, _make_random(plan, number, str(attempt)))
        except NoValue:
            continue
        if point != parent.point and meets_constraints(plan.search.constraints, point):
            return point
    return parent.point


def _find_rule(plan: SearchPlan) -> PopulationRule:
    rule = plan.search.pbt
    assert rule is not None, "the search has a population"
    return rule


def _make_random(plan: SearchPlan, number: int, purpose: str) -> random.Random:
    """Return random numbers that depend only on the seed of the search, the trial and the purpose. Their method
    `random` gives the same numbers in every version of Python.
    """
    text = f"pbt {plan.search.seed} {number} {purpose}"
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]))


def _rank_trials(plan: SearchPlan, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that have a value, the best first; those beyond the constraints come last."""
    sign = -1.0 if plan.search.goal is Goal.MAXIMIZE else 1.0
    judged = [trial for trial in trials if trial.value is not None and trial.outcome is not TrialOutcome.FAILED]
    return sorted(judged, key=lambda trial: (trial.excess, sign * (trial.value or 0.0), trial.number))


def _change_point(plan: SearchPlan, point: Point, numbers: random.Random) -> Point:
    """Return a point near another one.

    Raises:
        NoValue: a parameter has no number with the new values of others.
    """
    before = dict(point)
    texts: dict[str, str] = {}
    resample = _find_rule(plan).resample
    for parameter in sort_parameters(plan.parameters):
        if is_there(parameter, texts):
            old = before.get(parameter.name)
            if numbers.random() < resample or old is None:
                texts[parameter.name] = _draw_value(parameter, texts, numbers)
            else:
                texts[parameter.name] = _move_value(parameter, old, texts, numbers)
    return tuple((parameter.name, texts[parameter.name]) for parameter in plan.parameters if parameter.name in texts)


def _draw_value(parameter: Parameter, texts: Mapping[str, str], numbers: random.Random) -> str:
    """Return any value of a parameter."""
    place = numbers.random()
    if parameter.distribution is None:
        values = tuple(dict.fromkeys(parameter.values))
        return values[int(place * len(values))]
    low, high = find_place_ends(parameter.distribution)
    return write_number(parameter.distribution, low + place * (high - low), texts)


def _move_value(parameter: Parameter, old: str, texts: Mapping[str, str], numbers: random.Random) -> str:
    """Return a value near another one: a number times 0.8 or 1.2, or the value before or after it in a list."""
    goes_up = numbers.random() < 1 / len(_FACTORS)
    if parameter.distribution is not None:
        return _move_number(parameter.distribution, old, texts, goes_up=goes_up)
    values = tuple(dict.fromkeys(parameter.values))
    if len(values) == 1:
        return values[0]
    index = values.index(old) + (1 if goes_up else -1)
    return values[index if 0 <= index < len(values) else 1 if index < 0 else len(values) - 2]


def _move_number(distribution: Distribution, old: str, texts: Mapping[str, str], *, goes_up: bool) -> str:
    low, high = find_ends(distribution, texts)
    target = min(max(float(old) * _FACTORS[goes_up], low), high)
    text = write_number(distribution, find_place(distribution, repr(target), texts), texts)
    step = 1.0 if distribution.by_magnitude else distribution.step or (1.0 if distribution.scale is Scale.INT else 0.0)
    if step and float(text) == float(old):  # a small number of a range with steps: the step beside it
        target = min(max(float(old) + (step if goes_up else -step), low), high)
        text = write_number(distribution, find_place(distribution, repr(target), texts), texts)
    return text
