"""How far a job is, by what its bars show one after the other: nested ones, pauses, restarts, clocks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.progress import NO_PROGRESS, Progress, ProgressState, add_readings, find_progress
from riseml.analysis.progress_lines import REPORTED, Reading, read_line

Timed = Sequence[tuple[float, str]]
"""Seconds, and a line."""


def bar(done: int, of: int, label: str = "") -> str:
    return f"{label}{100 * done // of:3}%|####      | {done}/{of} [00:01<00:01, 3.40it/s]"


def bars(first: int, last: int, of: int, label: str = "") -> list[str]:
    return [bar(done, of, label) for done in range(first, last + 1)]


def follow(lines: Timed) -> Iterator[tuple[float, ProgressState, Progress | None]]:
    state = NO_PROGRESS
    for at, line in lines:
        state = add_readings(state, read_line(line), at)
        yield at, state, find_progress(state, at)


def find_last(lines: Timed) -> Progress | None:
    return list(follow(lines))[-1][2]


def every(seconds: float, lines: Sequence[str], start: float = 0.0) -> list[tuple[float, str]]:
    return [(start + seconds * at, line) for at, line in enumerate(lines)]


def test_a_steady_bar_has_the_time_that_it_takes() -> None:
    progress = find_last(every(2.0, bars(0, 399, 1000)))
    assert progress is not None
    assert (progress.amount, progress.of, progress.unit, progress.rounds) == (399, 1000, "step", 0)
    assert progress.fraction == pytest.approx(0.399)
    assert progress.per_second == pytest.approx(0.5)
    assert progress.remaining == pytest.approx(2 * 601, rel=0.01)


@pytest.mark.parametrize("line", [bar(4, 10), "Epoch 3/10", "step 4/10", "Epoch [3/10], Step [4/20]"])
def test_nothing_is_told_by_a_single_line(line: str) -> None:
    assert find_last([(1.0, line)]) is None
    assert find_last([(1.0, line), (2.0, line)]) is None


def test_what_a_job_reports_itself_counts_at_once_and_alone() -> None:
    state = add_readings(NO_PROGRESS, read_line(bar(4, 10)), 1.0)
    state = add_readings(state, [Reading(REPORTED, "", 30, 100, "")], 2.0)
    state = add_readings(state, [*read_line(bar(5, 10)), *read_line("Epoch 1/3")], 3.0)
    progress = find_progress(state, 3.0)
    assert progress is not None
    assert (progress.amount, progress.of, progress.remaining) == (30, 100, None)


@pytest.mark.parametrize(
    ("lines", "fraction"),
    [
        pytest.param(
            [*("Epoch 1/10", *bars(0, 10, 10)), *("Epoch 2/10", *bars(0, 10, 10)), "Epoch 3/10", *bars(0, 5, 10)],
            (2 + 0.5) / 10,
            id="Epoch 3/10 before its bar",
        ),
        pytest.param(
            [line for epoch in (1, 2, 3) for line in (*bars(0, 10, 10), f"Epoch {epoch}/10 loss=1")],
            0.3,
            id="Epoch 3/10 after its bar",
        ),
        pytest.param(
            [line for outer in range(3) for line in (bar(outer, 10, "all"), *bars(0, 3, 4, "each"))],
            (2 + 0.75) / 10,
            id="a bar inside of a bar",
        ),
        pytest.param([*bars(0, 50, 100), *bars(1, 8, 8, "Evaluating"), bar(51, 100)], 0.51, id="evaluation"),
        pytest.param([*bars(0, 4, 4, "Downloading"), *bars(0, 10, 100)], 0.1, id="a bar before"),
        pytest.param(["step 1/3: prepared", *bars(0, 10, 10) * 2, *bars(0, 5, 10)], 0.5, id="a count that never moves"),
        pytest.param(
            [f"Epoch [{epoch}/4], Step [{step}/10]" for epoch in (1, 2) for step in range(1, 11)][:-5],
            (1 + 0.5) / 4,
            id="two counts in a line",
        ),
    ],
)
def test_the_outermost_bar_counts(lines: list[str], fraction: float) -> None:
    progress = find_last(every(1.0, lines))
    assert progress is not None
    assert progress.fraction == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("lines", "done"),
    [
        pytest.param([*bars(0, 50, 50, "train"), *bars(0, 5, 5, "val"), *bars(0, 30, 50, "train")], 30, id="two bars"),
        pytest.param([*bars(0, 50, 50, "Epoch 1:"), *bars(0, 29, 50, "Epoch 2:")], 29, id="a numbered bar"),
        pytest.param([*bars(0, 40, 50), *bars(0, 20, 50)], 20, id="from a checkpoint"),
    ],
)
def test_bars_that_begin_again_leave_the_time_unknown(lines: list[str], done: int) -> None:
    progress = find_last(every(1.0, lines))
    assert progress is not None
    assert (progress.amount, progress.rounds, progress.remaining) == (done, 1, None)


def test_a_bar_that_stands_still_has_no_time_left() -> None:
    *_, (at, state, progress) = follow(every(1.0, bars(0, 299, 1000)))
    assert progress is not None
    assert progress.remaining is not None
    later = find_progress(state, at + 20)
    assert later is not None
    assert later.remaining == pytest.approx(progress.remaining - 20)
    much_later = find_progress(state, at + 60)
    assert much_later is not None
    assert (much_later.remaining, much_later.per_second) == (None, None)


def test_an_abandoned_bar_makes_room() -> None:
    progress = find_last([*every(1.0, bars(0, 19, 100, "warmup")), *every(1.0, bars(0, 3, 9), 2000.0)])
    assert progress is not None
    assert (progress.amount, progress.of) == (3, 9)


def test_pauses_for_evaluation_are_a_part_of_the_rate() -> None:
    """Each 100 steps of a second an evaluation takes 50 s: as transformers' Trainer does."""
    lines: list[tuple[float, str]] = []
    at = 0.0
    for step in range(601):
        lines.append((at, bar(step, 1000)))
        at += 1.0
        if step % 100 == 99:
            lines += every(5.0, bars(1, 10, 10, "Evaluating"), at)
            at += 50.0
    progress = find_last(lines)
    assert progress is not None
    assert progress.remaining == pytest.approx(400 * 1.5, rel=0.2)


RHYTHMS = st.lists(
    st.tuples(
        st.floats(-5.0, 400.0),  # seconds since the line before; below 0: the clock was set back
        st.sampled_from(["next", "next", "next", "next", "leap", "again", "inner", "epoch", "other", "noise"]),
    ),
    max_size=120,
)


@given(rhythm=RHYTHMS, of=st.integers(1, 300))
def test_an_estimate_never_jumps_by_more_than_its_spread(rhythm: list[tuple[float, str]], of: int) -> None:
    at = 0.0
    done = inner = epoch = 0
    state = NO_PROGRESS
    for seconds, move in rhythm:
        at += seconds
        done = 0 if move == "again" else min(of, done + {"next": 1, "leap": 17}.get(move, 0))
        inner = (inner + 1) % 5
        epoch += move == "epoch"
        line = {
            "inner": bar(inner, 4, "inner"),
            "epoch": f"Epoch {min(epoch, 9)}/9",
            "other": bar(inner, 7, f"other {done}"),
            "noise": "loss 0.31 at 3/4",
        }.get(move, bar(done, of))
        before, state = state, add_readings(state, read_line(line), at)
        progress = find_progress(state, at)
        assert [mark[0] for mark in state.marks] == sorted(mark[0] for mark in state.marks)
        assert [mark[1] for mark in state.marks] == sorted(mark[1] for mark in state.marks)
        if progress is not None:
            assert 0 <= progress.fraction <= 1
            assert progress.remaining is None or progress.remaining >= 0
            assert progress.spread is None or progress.remaining is not None
        if before.end_at is not None and state.end_at is not None and before.levels[0].key == state.levels[0].key:
            assert abs(state.end_at - before.end_at) <= max(state.spread, 1.0) + 1e-6


@given(seed=st.integers(0, 2**32), of=st.integers(40, 400), noise=st.floats(0.0, 0.5))
def test_a_noisy_rate_gives_the_right_time(seed: int, of: int, noise: float) -> None:
    chance = random.Random(seed)
    at = 0.0
    lines: list[tuple[float, str]] = []
    for done in range(of // 2 + 1):
        lines.append((at, bar(done, of)))
        at += 1.0 + chance.uniform(-noise, noise)
    progress = find_last(lines)
    assert progress is not None
    assert progress.remaining is not None
    assert progress.remaining == pytest.approx(of - of // 2, rel=0.35)
