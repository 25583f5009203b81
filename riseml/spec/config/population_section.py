"""`search.pbt`: the population of a search with `method: pbt`, and what such a search cannot have."""

from __future__ import annotations

from riseml.spec.config.sections import read_path_patterns
from riseml.spec.config.types import PopulationRule, SearchMethod
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_section

_SEARCH: KeyPath = ("train", "search")
_PBT: KeyPath = (*_SEARCH, "pbt")
_LEAST_GENERATIONS = 2  # with fewer nothing is continued


def read_population(file: SourceFile, method: SearchMethod, repeat: int) -> PopulationRule | None:
    """Return the population of a search; None for another method. Problems go to `file`.

    Args:
        file: the file.
        method: of the search.
        repeat: how often each point runs; 0: once.
    """
    is_there = file.value_at(_PBT) is not None
    if method is not SearchMethod.PBT:
        if is_there:
            problem = f"{method.value} has no population"
            file.refuse_key(_PBT, problem, "write `method: pbt`, or remove pbt")
        return None
    if repeat:
        problem = "pbt continues single runs, and repeat makes several of each point"
        file.refuse_key(
            ("train", "repeat"), problem, "remove repeat, and run the search again with another search.seed"
        )
    if file.value_at((*_SEARCH, "stop")) is not None:
        problem = "pbt itself replaces the trials that do worse than others"
        file.refuse_key((*_SEARCH, "stop"), problem, "remove stop; pbt.replace says how many are replaced")
    return (
        read_section(file, _PBT, PopulationRule, inherit=read_path_patterns(file, (*_PBT, "inherit")))
        if is_there
        else PopulationRule()
    )


def check_generations(file: SourceFile, rule: PopulationRule, trials: int, points: int) -> None:
    """Refuse a number of trials that makes no whole generations, and points beyond the first generation.

    Args:
        file: problems go there.
        rule: of the search.
        trials: of all generations.
        points: how many points the user has chosen.
    """
    size = rule.population
    path: KeyPath = (*_SEARCH, "trials")
    has_size = all(bad[: len(_PBT)] != _PBT for bad in file.bad)
    if file.value_at(path) is not None and path not in file.bad and has_size:
        if trials < _LEAST_GENERATIONS * size:
            problem = f"{trials} trials are less than two generations of {size}, so that none continues another one"
            file.refuse(path, problem, f"write `trials: {_LEAST_GENERATIONS * size}` or more")
        elif trials % size:
            lower = trials // size * size
            problem = f"{trials} trials are no whole number of generations of {size}"
            file.refuse(path, problem, f"write `trials: {lower}` or `trials: {lower + size}`")
    if points > size:
        problem = f"there are {points} points to try first, and the first generation has {size} trials"
        file.refuse_key((*_SEARCH, "points"), problem, f"write {size} points or fewer, or a larger pbt.population")
