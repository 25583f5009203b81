"""When silence is a stall: odd rhythms of a whole day raise no alarm, and silence after them does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.stalls import (
    GAPS,
    SHORTEST,
    SHORTEST_PAUSE,
    Rhythm,
    Stall,
    add_sign,
    describe_stall,
    find_patience,
    find_stalls,
    is_sign,
    opens_pause,
    skip_time,
)
from riseml.base.names import JobName

DAY = 24 * 3600.0
WORKERS = (JobName("worker.1"), JobName("worker.2"), JobName("worker.3"))

Beat = tuple[float, bool]
"""Seconds until the next sign, and True when a known pause follows that sign."""


def steady(chance: random.Random) -> Iterator[Beat]:
    """Steps that vary by the factor three."""
    step = 10 ** chance.uniform(1.3, 3.5)
    while True:
        yield step * chance.uniform(0.5, 1.5), False


def evaluated(chance: random.Random) -> Iterator[Beat]:
    """Quick steps, then an evaluation or a checkpoint of half an hour at most, which the output names."""
    while True:
        for _ in range(chance.randrange(1, 400)):
            yield chance.uniform(0.5, 60), False
        yield 1.0, True
        yield chance.uniform(1, SHORTEST_PAUSE), False


def bursts(chance: random.Random) -> Iterator[Beat]:
    """Everything about an epoch at once, then nothing until the next one."""
    epoch = chance.uniform(60, 4 * 3600)
    while True:
        yield from [(0.0, False)] * chance.randrange(1, 100)
        yield epoch * chance.uniform(0.6, 1.4), False


def rarer(chance: random.Random) -> Iterator[Beat]:
    """Prints at the steps 1, 10, 100, 1000: each silence is a multiple of the one before."""
    factor = chance.uniform(1.05, 20)
    gap = chance.uniform(0.1, 10)
    while True:
        yield gap, False
        gap *= factor


def slower(chance: random.Random) -> Iterator[Beat]:
    """Steps that take longer and longer, up to four times the longest so far at once."""
    longest = chance.uniform(1, 30)
    while True:
        for _ in range(chance.randrange(20, 600)):
            yield chance.uniform(0.1, 1) * longest, False
        longest = min(longest * chance.uniform(1, 4), 6 * 3600)


def late(chance: random.Random) -> Iterator[Beat]:
    """Prints its settings in a minute, then computes for hours before the rest."""
    for _ in range(chance.randrange(1, 60)):
        yield chance.uniform(0, 2), False
    yield chance.uniform(600, 12 * 3600), False
    yield from steady(chance)


def mixed(chance: random.Random) -> Iterator[Beat]:
    """Prints within the five minutes that are never a stall, in any way."""
    while True:
        yield chance.choice([0.0, 0.01, 1.0, 60.0, SHORTEST - 1]) * chance.random(), chance.random() < 0.1


RHYTHMS: tuple[Callable[[random.Random], Iterator[Beat]], ...] = (
    steady,
    evaluated,
    bursts,
    rarer,
    slower,
    late,
    mixed,
)


def list_beats(beats: Iterator[Beat], seconds: float = DAY, most: int = 2000) -> Iterator[Beat]:
    """Yield the signs of a day, as far as they are no more than `most`."""
    total = 0.0
    for wait, pause in beats:
        total += wait
        most -= 1
        if total > seconds or most < 0:
            return
        yield wait, pause


def play(beats: Iterator[Beat], after: float | None = None) -> tuple[Rhythm, float, list[Stall]]:
    """Return the rhythm, its last moment, and the stalls that looks just before each sign have seen."""
    rhythm = Rhythm(0.0)
    now = 0.0
    stalls: list[Stall] = []
    for wait, pause in beats:
        now += wait
        stalls += find_stalls(rhythm, {}, now - 1e-6, after)
        rhythm = add_sign(rhythm, now, opens_pause=pause)
    return rhythm, now, stalls


@pytest.mark.parametrize("make", RHYTHMS, ids=lambda make: make.__name__)
@given(seed=st.integers(0, 2**32))
def test_an_odd_rhythm_of_a_day_is_no_stall(make: Callable[[random.Random], Iterator[Beat]], seed: int) -> None:
    _, _, stalls = play(list_beats(make(random.Random(seed))))
    assert stalls == []


@pytest.mark.parametrize("make", [steady, evaluated, mixed], ids=lambda make: make.__name__)
@given(seed=st.integers(0, 2**32), hours=st.floats(10, 20))
def test_silence_after_hours_of_a_rhythm_is_a_stall(
    make: Callable[[random.Random], Iterator[Beat]], seed: int, hours: float
) -> None:
    """After the whole patience, and not a second earlier."""
    rhythm, now, _ = play(list_beats(make(random.Random(seed)), hours * 3600))
    patience = find_patience(rhythm)
    if patience is None:  # the beats were so quick that their number ended them early
        assert rhythm.span < max(SHORTEST_PAUSE, GAPS * max(rhythm.gap, rhythm.pause))
        return
    assert patience >= max(SHORTEST, GAPS * rhythm.gap)
    assert find_stalls(rhythm, {}, now + patience - 1) == ()
    (stall,) = find_stalls(rhythm, {}, now + patience + 1)
    assert (stall.job, stall.usual) == (None, rhythm.gap)


@given(seed=st.integers(0, 2**32), blind=st.floats(1, DAY))
def test_time_in_which_nothing_could_be_seen_is_no_silence(seed: int, blind: float) -> None:
    rhythm, now, _ = play(list_beats(steady(random.Random(seed)), 4 * 3600))
    later = skip_time(rhythm, blind, now + blind)
    assert find_patience(later) == find_patience(rhythm)
    assert find_stalls(later, {}, now + blind + SHORTEST - 1) == ()
    assert add_sign(later, now + blind + 1).gap == max(rhythm.gap, 1.0) or rhythm.is_in_pause


def test_what_riseml_yml_says_counts_from_the_start_on_and_whatever_the_rhythm() -> None:
    assert find_stalls(Rhythm(0.0), {}, 59.0, 60.0) == ()
    assert find_stalls(Rhythm(0.0), {}, 60.0, 60.0) == (Stall(None, 60.0, 0.0),)
    rhythm, now, stalls = play(iter([(50.0, False)] * 40), 60.0)
    assert stalls == []
    assert find_stalls(rhythm, {}, now + 61.0, 60.0)[0].usual == 50.0


def test_a_rank_is_named_that_was_silent_first_or_alone() -> None:
    """Where one rank alone prints, the others have no rhythm that they could lose."""
    beats = [(2.0, False)] * 600
    rhythm, now, _ = play(iter(beats))
    early, before, _ = play(iter(beats[:-20]))
    startup, _, _ = play(iter(beats[:30]))
    assert now - before == 40.0
    jobs = dict(zip(WORKERS, (rhythm, early, startup), strict=True))
    assert find_stalls(rhythm, jobs, now + 1) == ()
    (alone,) = find_stalls(add_sign(rhythm, now + 299), jobs | {WORKERS[0]: add_sign(rhythm, now + 299)}, now + 299)
    assert alone == Stall(WORKERS[1], 339.0, 2.0, WORKERS[1])
    assert describe_stall(alone) == "no sign of progress for 6 m, after 2 s at most before, while other jobs go on"
    quiet_jobs = dict(zip(WORKERS, (rhythm, early, Rhythm(0.0)), strict=True))
    (together,) = find_stalls(rhythm, quiet_jobs, now + 301)
    assert (together.job, together.first) == (None, WORKERS[1])
    assert describe_stall(together).endswith("; worker.2 was silent first")
    same = dict(zip(WORKERS, repeat(rhythm), strict=False))
    assert find_stalls(rhythm, same, now + 301)[0].first is None


@pytest.mark.parametrize(
    ("output", "sign", "pause"),
    [
        (b"step 10 loss 0.3\n", True, False),
        (b"epoch 3 loss 0.3 val_loss 0.2\n", True, False),
        (b"Evaluating ...\n", True, True),
        (b"step 9\nSaving the checkpoint to /output/m.pt", True, True),
        (b"Saving model\nstep 10", True, False),
        (b"\r 97%|#### | 97/100 [00:10<00:01]", True, False),
        (b"\r100%|#####| 100/100 [00:10<00:00]", True, True),
        (b"313/313 [====] - 1s\n", True, True),
        (b"latest attestation\n", True, False),
        (b"\n\r\n", False, False),
        (b"W stall_inspector.cc:107] One or more tensors were submitted\nMissing ranks:\n1: [a.b, c]\n", False, False),
        (b"step 3: waiting for data took 0.2 s\n", True, False),
        (b"Still waiting for worker.2:2222\n", False, False),
        (b"Still waiting for worker.2:2222\nstep 3\n", True, False),
    ],
)
def test_what_output_says(output: bytes, *, sign: bool, pause: bool) -> None:
    assert is_sign(output) is sign
    assert not sign or opens_pause(output) is pause


def test_long_output_is_a_sign_without_a_search() -> None:
    assert is_sign(b"".join(chain(repeat(b"waiting for a peer\n", 10_000))))
