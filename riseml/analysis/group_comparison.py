"""Whether two groups of runs differ, in words that say no more than a test of a few values shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from riseml.analysis.groups import Group
from riseml.analysis.seed_statistics import MeanDifference, compare_means, compare_pairs
from riseml.base.records import dataclass

SIGNIFICANT = 0.05
"""A difference is shown where its p is below this."""

_LEAST = 2  # values of each group that a test needs
_FEW = 5  # with fewer values, only a large difference can be shown


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """What a test says of two groups."""

    verdict: str  # for people, one sentence
    notes: tuple[str, ...] = ()  # for people: what else has to be known
    test: str = ""  # `paired` or `welch`; empty: there was nothing to test
    result: MeanDifference | None = None  # of that test; None: there was none
    pairs: int = 0  # seeds that both groups have


def compare_groups(first: Group, second: Group, metric: str) -> GroupComparison:
    """Return whether the means of two groups differ.

    Where both groups have run with the same seeds, the values of each seed belong together: a paired t-test. Elsewhere
    Welch's t-test. Which of them is chosen depends on the seeds alone, and not on what comes out.
    """
    counts = (len(first.runs), len(second.runs))
    size = f"n = {counts[0]} and {counts[1]}"
    notes = [*_note_left_out(first), *_note_left_out(second)]
    if min(counts) < _LEAST:
        verdict = f"too few values to compare ({size}): a test needs at least {_LEAST} of each"
        return GroupComparison(verdict, tuple(notes))
    seeds = [_list_by_seed(group) for group in (first, second)]
    shared = sorted(seeds[0].keys() & seeds[1].keys())
    is_paired = len(shared) == counts[0] == counts[1]
    if is_paired:
        result = compare_pairs([seeds[0][seed] for seed in shared], [seeds[1][seed] for seed in shared])
    else:
        result = compare_means([run.value for run in first.runs], [run.value for run in second.runs])
    test = "paired" if is_paired else "welch"
    if result is None:
        verdict = f"no test is possible ({size}): {_explain_no_spread(is_paired=is_paired)}"
        return GroupComparison(verdict, tuple(notes), pairs=len(shared))
    p = _show_p(result.p)
    if min(counts) < _FEW:
        notes.append(f"With {size}, only a difference that is large beside the spread of the values can be shown")
    if result.p >= SIGNIFICANT:
        verdict = f"no difference shown ({p}, {size})"
        notes.append("That is not a proof that they are equal")
    else:
        larger = second.names[0] if result.difference > 0 else first.names[0]
        verdict = f"a difference is shown ({p}, {size}): {larger} has the larger mean {metric}"
    return GroupComparison(verdict, tuple(notes), test, result, len(shared))


def _show_p(p: float) -> str:
    """Return `p = 0.31`, with more digits where two would not show on which side of the limit it is."""
    if p < 0.001:
        return "p < 0.001"
    short = f"{p:.2g}"
    return f"p = {p:.4g}" if float(short) == SIGNIFICANT else f"p = {short}"


def _list_by_seed(group: Group) -> Mapping[str, float]:
    return {run.seed: run.value for run in group.runs if run.seed}


def _explain_no_spread(*, is_paired: bool) -> str:
    if is_paired:
        return "both differ by the same amount with every seed, and nothing says how much that would vary"
    return "all values of each are equal, and nothing says how much they would vary"


def _note_left_out(group: Group) -> list[str]:
    reasons = [
        *([f"{group.failed} without a value"] if group.failed else []),
        *([f"{group.unfinished} not finished"] if group.unfinished else []),
    ]
    notes = [f"{group.names[0]}: left out {', '.join(reasons)}; what is left may be the better ones"] if reasons else []
    if group.stopped:
        notes.append(f"{group.names[0]} was stopped early, so that its values are not those of whole runs")
    return notes
