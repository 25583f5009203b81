"""How good the points of a search are: riseml's proposals beside plain Optuna's, over many seeds on three functions.

The two differ only by chance when riseml asks the sampler as Optuna itself does. Each pair of samples gets a
Mann-Whitney test (two-sided, with the normal approximation and the correction for ties), and Holm's method keeps the
chance that any of the pairs differs by accident below 5 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.common import Bar, BenchContext, Measure, Report
from riseml.model import Point, SearchPlan, Trial, TrialOutcome
from riseml.searches.propose import Proposer, load_optuna
from riseml.searches.space import make_space, read_point
from riseml.spec.config.types import Distribution, Goal, Parameter, Scale, SearchMethod, SearchSection

SEEDS = 100
_TRIALS = 30  # of each search
_LEVEL = 0.05  # the chance that at least one pair of equal samplers is called different
METHODS = (SearchMethod.TPE, SearchMethod.CMA_ES, SearchMethod.RANDOM)

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TestFunction:
    """A function that searches minimize."""

    name: str
    parameters: tuple[Parameter, ...]
    compute: Callable[[Values], float]


def _branin(values: Values) -> float:
    x = values["x"]
    y = values["y"]
    curve = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return float(curve**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


def _rosenbrock(values: Values) -> float:
    x = values["x"]
    y = values["y"]
    z = values["z"]
    return float(100 * (y - x**2) ** 2 + (1 - x) ** 2 + 100 * (z - y**2) ** 2 + (1 - y) ** 2)


def _training(values: Values) -> float:
    """Return a loss as a training has it: one rate by magnitude, a whole number, and a choice."""
    rate = (math.log10(values["lr"]) + 2.5) ** 2
    size = ((values["units"] - 144) / 100) ** 2
    return float(rate + size + {"adam": 0.0, "sgd": 0.4, "rmsprop": 0.2}[values["optimizer"]])


def _uniform(name: str, low: float, high: float) -> Parameter:
    return Parameter(name, (), Distribution(Scale.UNIFORM, low, high))


FUNCTIONS = (
    TestFunction("Branin", (_uniform("x", -5, 10), _uniform("y", 0, 15)), _branin),
    TestFunction("Rosenbrock in 3 dimensions", tuple(_uniform(name, -2, 2) for name in "xyz"), _rosenbrock),
    TestFunction(
        "a training with a choice",
        (
            Parameter("lr", (), Distribution(Scale.LOG, 1e-5, 0.1)),
            Parameter("units", (), Distribution(Scale.INT, 16, 256, 16)),
            Parameter("optimizer", ("adam", "sgd", "rmsprop")),
        ),
        _training,
    ),
)


def add_quality(report: Report, context: BenchContext) -> None:
    """Compare the best values of both, and add a bar for all pairs together."""
    seeds = range(1, context.rounds(SEEDS, 5) + 1)
    chances: dict[str, float] = {}
    for function in FUNCTIONS:
        for method in METHODS:
            samples = {
                "riseml": [search_with_riseml(function, method, seed) for seed in seeds],
                "Optuna": [search_with_optuna(function, method, seed) for seed in seeds],
            }
            statistic, chance = compare_samples(*samples.values())
            group = f"best of {_TRIALS} trials, {method.value}, {function.name}"
            note = f"U = {statistic:.0f}, p = {chance:.3f}"
            report.add(group, Measure("riseml", tuple(samples["riseml"]), "", note))
            report.add(group, Measure("Optuna", tuple(samples["Optuna"]), ""))
            chances[f"{method.value} on {function.name}"] = chance
    name, chance = min(chances.items(), key=lambda pair: pair[1])
    limit = _LEVEL / len(chances)
    report.bars.append(
        Bar(
            f"{len(chances)} pairs of samplers over {len(seeds)} seeds: no significant difference from plain Optuna",
            f"smallest p {chance:.4f} ({name}), significant below {limit:.4f}",
            chance >= limit,
            "riseml asks the sampler for other points than Optuna does",
        )
    )


def search_with_riseml(function: TestFunction, method: SearchMethod, seed: int) -> float:
    """Return the best value of a search that riseml makes, one trial after the other."""
    section = SearchSection(method=method, metric="loss", goal=Goal.MINIMIZE, trials=_TRIALS, seed=seed)
    plan = SearchPlan(section, function.parameters)
    proposer = Proposer(plan)
    trials: list[Trial] = []
    for number in range(1, _TRIALS + 1):
        point = proposer.propose_point(trials)
        assert point is not None, "the spaces are large"
        running = Trial(number, number, point, number - 1)
        value = function.compute(_read_values(function, point))
        trials.append(replace(running, outcome=TrialOutcome.COMPLETE, closed=True, told=number, value=value))
    return min(trial.value for trial in trials if trial.value is not None)


def search_with_optuna(function: TestFunction, method: SearchMethod, seed: int) -> float:
    """Return the best value of a study of plain Optuna, one trial after the other."""
    optuna = load_optuna()
    samplers: dict[SearchMethod, Callable[[], Any]] = {
        SearchMethod.TPE: lambda: optuna.samplers.TPESampler(seed=seed),
        SearchMethod.CMA_ES: lambda: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        SearchMethod.RANDOM: lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    study = optuna.create_study(sampler=samplers[method]())
    space = make_space(function.parameters)
    for _ in range(_TRIALS):
        trial = study.ask(space)
        study.tell(trial, function.compute(trial.params))
    return float(study.best_value)


def _read_values(function: TestFunction, point: Point) -> Values:
    return read_point(function.parameters, point)


def compare_samples(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return U of the Mann-Whitney test, and the chance of a difference as large as this between equal samplers."""
    ranks = _rank_values([*first, *second])
    count = len(first)
    other = len(second)
    statistic = sum(ranks[:count]) - count * (count + 1) / 2
    total = count + other
    ties = sum(size**3 - size for size in Counter([*first, *second]).values())
    variance = count * other / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance == 0:
        return statistic, 1.0
    distance = max(0.0, abs(statistic - count * other / 2) - 0.5) / math.sqrt(variance)
    return statistic, math.erfc(distance / math.sqrt(2))


def _rank_values(values: Sequence[float]) -> list[float]:
    """Return the rank of each value from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for position in range(start, end):
            ranks[order[position]] = (start + end + 1) / 2
        start = end
    return ranks
