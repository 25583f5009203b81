"""The generations of a search with a population (`method: pbt`). Pure.

The trials of such a search have their places by their numbers: with a population of 8, the trials 1 to 8 are the first
generation, and trial 11 is the third member of the second one. A generation begins when the one before has all its
results.
"""

from __future__ import annotations

from riseml.model import Lineage, SearchPlan, SearchRecord, Trial


def find_generation(plan: SearchPlan, number: int) -> int | None:
    """Return the generation of a trial, from 1; None: the search has none."""
    return None if plan.search.pbt is None else (number - 1) // plan.search.pbt.population + 1


def awaits_generation(record: SearchRecord) -> bool:
    """Return True while the next trial belongs to a generation that may not begin yet."""
    rule = record.plan.search.pbt
    if rule is None:
        return False
    count = len(record.trials)
    before = record.trials[: count - count % rule.population]
    return any(trial.outcome is None for trial in before)


def make_lineage(plan: SearchPlan, number: int, parent: Trial | None = None) -> Lineage | None:
    """Return the place of a trial in its search; None: the search has no generations."""
    generation = find_generation(plan, number)
    if plan.search.pbt is None or generation is None:
        return None
    if parent is None:
        return Lineage(generation)
    return Lineage(generation, parent.number, parent.experiment, plan.search.pbt.inherit)
