"""How far jobs are, and what is probably wrong with them."""

from __future__ import annotations

from typing_extensions import TypedDict


class ProgressView(TypedDict):
    """How far a job that runs is, as it says itself or as its output shows."""

    job: str  # its name: `worker.1`
    done: float  # names: as in `progress(done, of)`
    of: float
    unit: str  # of `done` and `of`: `step`, `epoch`, `%`; empty: not known
    fraction: float  # from 0 to 1, with what a bar inside has done of the next unit
    per_second: float | None  # units; null: not known
    remaining: float | None  # seconds that are left, about; null: not known
    spread: float | None  # seconds by which `remaining` may be wrong; null: it is not known
    rounds: int  # how often the bar began again: then it tells how far the round is, and `remaining` is null


class RateView(TypedDict):
    """How fast a job is."""

    unit: str  # one of what it does: `step`, `sample`, `image`, `token`, or the unit of its bar
    per_second: float


class RemarkView(TypedDict):
    """Something that is probably wrong with an experiment that runs."""

    # `nan`: a loss is not a number; `diverged`: it has grown tenfold; `stalled`: a metric does not improve; `stuck`:
    # nothing gives a sign of progress; `slower`: the rate has dropped by half; `memory`: it grows towards its limit;
    # `idle-gpu`. Later versions may have more.
    kind: str
    job: str | None  # the name of the job that it is about; null: the whole experiment
    text: str  # for people
    since: str | None  # RFC 3339: when it began; null: not known
