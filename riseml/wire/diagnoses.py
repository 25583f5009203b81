"""Why an experiment makes no progress."""

from __future__ import annotations

from typing_extensions import TypedDict


class RankFindingView(TypedDict):
    """What one rank did when it was looked at."""

    rank: str  # `worker.2`; `worker.2 rank 5` where a job has several
    job: str  # `worker.2`
    # `collective`, `meeting`, `service`, `data`, `lock`, `file`, `network`, `child`, `queue`, `sleep`; null: no wait
    # that riseml knows. Later versions may have more.
    wait: str | None
    place: str | None  # `all_reduce (train.py:88)`; null: no stack could be read
    text: str  # for people: `it waits for data in DataLoader, __next__ (data.py:41)`
    samples: int  # that agree
    of: int  # samples in all
    state: str  # of its main process, the letter of the kernel: R, S, D, T or Z
    helpers: list[str]  # what the processes do that it has started, a sentence each


class DiagnosisView(TypedDict):
    """Why an experiment made no progress at one moment."""

    id: str  # of the experiment
    time: str  # RFC 3339: when it was looked at first
    attempt: int  # of its jobs
    by_stall: bool  # a stall was noticed; false: a user asked
    seconds: float  # from the first look to the answer
    # `stopped`, `kernel`, `ended`, `disk-full`, `open-files`, `absent`, `left-loop`, `order`, `collective`, `meeting`,
    # `data`, `lock`, `file`, `network`, `child`, `queue`, `sleep`, `busy`, `works`, `unknown`. Later versions may have
    # more.
    cause: str
    certainty: str  # `certain`: the kernel says so; `likely`: every sample says so; `possible`
    sentence: str  # for people
    culprits: list[str]  # ranks; empty: none differs from the others
    evidence: list[str]  # a sentence each
    ranks: list[RankFindingView]
