"""Which job slows the others down, according to the server's measurements. Each warning names what was measured. Pure.

Two warnings, from what a live view has seen in the last minute (`riseml monitor`, and the web page through the server):

- **The worker furthest behind.** Of the jobs that train (master or chief, and workers), at least three. They are
  compared by the rate at which each gets on, where all of them tell it in the same unit. Else by the lines that they
  print, because a training loop prints a line for so many steps. Jobs that print fewer than 10 lines in that time are
  compared by their processor time instead. It is named only when it is clearly below the median: less than three
  quarters of the rate or of the lines, or half of the processor time.
- **A parameter server at its line rate.** What it sends or gets for 20 s, in each of three looks at least, is 90
  to 100 per cent of what a usual network link carries, and the experiment runs on several hosts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

from riseml.analysis.trends import Amount, Trends
from riseml.base.amounts import format_bytes, format_rate
from riseml.base.records import dataclass

if TYPE_CHECKING:
    from riseml import wire

WINDOW = 60.0  # seconds that are compared
_SHORTEST = 15.0  # seconds; below that it warns of nothing
_FEWEST_LINES = 10  # lines of the median job, for a comparison by lines
_FEWEST_JOBS = 3  # the fewest jobs for a meaningful median
_LEAST_CPU = 10.0  # percent of a core of the median job, for a comparison by processor time
_BEHIND_IN_LINES = 0.75  # part of the median
_BEHIND_IN_RATE = 0.75  # part of the median
_BEHIND_IN_CPU = 0.5  # part of the median
_STEADY = 20.0  # seconds that a link must be full
_FEWEST_LOOKS = 3  # in which it must be
_LINKS = (1, 2.5, 5, 10, 25, 40, 50, 100, 200, 400)  # Gbit/s
_FULL = 0.9  # part of a link's rate
_TRAINING = frozenset({"master", "chief", "worker"})


class StragglerKind(enum.Enum):
    """How a job slows the others down."""

    BEHIND = "behind"  # it prints or computes less than the others
    FULL_LINK = "full-link"  # its network link is full


@dataclass(frozen=True, slots=True)
class StragglerWarning:
    """A job that slows the others down."""

    job: str  # its ID
    text: str  # what was measured
    kind: StragglerKind = StragglerKind.BEHIND


def find_stragglers(samples: Sequence[wire.SampleView], trends: Trends) -> list[StragglerWarning]:
    """Return the warnings about each experiment."""
    warnings: list[StragglerWarning] = []
    for _, jobs in groupby(samples, key=lambda sample: _split_id(sample["id"])[0]):
        gang = list(jobs)
        training = [sample for sample in gang if sample["state"] == "RUNNING" and _find_role(sample) in _TRAINING]
        ids = [sample["id"] for sample in training]
        is_told = len(training) >= _FEWEST_JOBS and _tell_one_rate(training)
        behind = _find_slow(ids, _name_unit(training[0]), trends) if is_told else _find_behind(ids, trends)
        warnings += [] if behind is None else [behind]
        if len({sample["host"] for sample in gang}) > 1:
            warnings += _find_full_links([sample["id"] for sample in gang if _find_role(sample) == "ps"], trends)
    return warnings


def _tell_one_rate(samples: Sequence[wire.SampleView]) -> bool:
    """Return True when all jobs tell the rate at which they get on, of the same whole."""
    told_progress = [sample.get("progress") for sample in samples]  # a server of an earlier version sends none
    wholes = {(entry["unit"], entry["of"]) for entry in told_progress if entry and entry["per_second"] is not None}
    return len(wholes) == 1 and all(entry and entry["per_second"] is not None for entry in told_progress)


def _name_unit(sample: wire.SampleView) -> str:
    progress = sample.get("progress")
    return "" if progress is None else progress["unit"]


def _read_rate(sample: wire.SampleView) -> float | None:
    progress = sample.get("progress")
    return None if progress is None else progress["per_second"]


def _find_slow(jobs: Sequence[str], unit: str, trends: Trends) -> StragglerWarning | None:
    """Return the job that gets on at less than three quarters of the median rate."""
    if any(not trends.list_last(job, _read_rate, _SHORTEST, 2) for job in jobs):
        return None
    rates = [trends.average(job, _read_rate, WINDOW) or 0.0 for job in jobs]
    slowest = min(range(len(jobs)), key=rates.__getitem__)
    if rates[slowest] >= _BEHIND_IN_RATE * median(rates):
        return None
    noun = {"": "its work", "%": "per cent"}.get(unit, f"{unit}s")
    comparison = f"{format_rate(rates[slowest])} of {noun}, the median of {len(jobs)} jobs {format_rate(median(rates))}"
    return StragglerWarning(jobs[slowest], f"{jobs[slowest]} is furthest behind: it does {comparison}")


def _find_behind(jobs: Sequence[str], trends: Trends) -> StragglerWarning | None:
    if len(jobs) < _FEWEST_JOBS:
        return None
    lines = [trends.count_lines(job, WINDOW) for job in jobs]
    counts = [line_count for line_count in lines if line_count is not None]
    if len(counts) < len(jobs) or min(seconds for _, seconds in counts) < _SHORTEST:
        return None
    seconds = min(seconds for _, seconds in counts)
    rates = [count / length for count, length in counts]
    if median(rates) * seconds >= _FEWEST_LINES:
        slowest = min(range(len(jobs)), key=rates.__getitem__)
        if rates[slowest] >= _BEHIND_IN_LINES * median(rates):
            return None
        comparison = f"{format_rate(rates[slowest])} lines, the median of {len(jobs)} jobs {format_rate(median(rates))}"
        return StragglerWarning(jobs[slowest], f"{jobs[slowest]} is furthest behind: it prints {comparison}")
    return _find_idle(jobs, trends)


def _find_idle(jobs: Sequence[str], trends: Trends) -> StragglerWarning | None:
    averages = [trends.average(job, lambda sample: sample["cpu"], WINDOW) for job in jobs]
    used = [average for average in averages if average is not None]
    if len(used) < len(jobs) or median(used) < _LEAST_CPU or min(used) >= _BEHIND_IN_CPU * median(used):
        return None
    job = jobs[used.index(min(used))]
    comparison = f"{min(used) / 100:.2f} cores, the median of {len(jobs)} jobs {median(used) / 100:.2f}"
    return StragglerWarning(job, f"{job} uses the least processor time: {comparison}")


def _find_full_links(jobs: Sequence[str], trends: Trends) -> Iterator[StragglerWarning]:
    ways: tuple[tuple[str, Amount], ...] = (
        ("gets", lambda sample: sample["net_in"]),
        ("sends", lambda sample: sample["net_out"]),
    )
    for job in jobs:
        for verb, amount in ways:
            amounts = trends.list_last(job, amount, _STEADY, _FEWEST_LOOKS)
            link = next((link for link in _LINKS if amounts and all(_fills_link(rate, link) for rate in amounts)), None)
            if link is not None:
                mean = format_bytes(sum(amounts) / len(amounts))
                yield StragglerWarning(
                    job, f"{job} {verb} {mean}/s, as much as a link of {link:g} Gbit/s carries", StragglerKind.FULL_LINK
                )


def _fills_link(rate: float, link: float) -> bool:
    return _FULL <= rate * 8 / (link * 1e9) <= 1.0


def _find_role(sample: wire.SampleView) -> str:
    return _split_id(sample["id"])[1].partition(".")[0]


def _split_id(identity: str) -> tuple[str, str]:
    """Return the experiment and the job that an ID names: `144.1` and `worker.2`."""
    parts = identity.split(".")
    at = next((at for at in range(1, len(parts)) if parts[at][:1].isalpha()), len(parts))
    return ".".join(parts[:at]), ".".join(parts[at:])
