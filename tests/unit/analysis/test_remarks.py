"""What is probably wrong with an experiment: each rule finds it, and raises no false alarm."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.remarks import (
    WINDOW,
    Mean,
    RemarkKind,
    check_gpus,
    check_loss,
    check_memory,
    check_rate,
    check_stalled,
    is_loss,
)

GB = 1e9


def read_history(values: list[float]) -> list[Mean]:
    return [Mean(value, value) for value in values]


@pytest.mark.parametrize("name", ["loss", "val_loss", "train/loss", "Loss", "loss_1", "eval loss"])
def test_losses_have_the_word_in_their_names(name: str) -> None:
    assert is_loss(name)
    assert not is_loss(name.replace("oss", "osses"))


@pytest.mark.parametrize(
    ("last", "not_finite", "values", "text"),
    [
        (math.nan, 3, [1.0, 0.5], "loss is nan at step 1,200"),
        (math.inf, 2, [], "loss is inf at step 1,200"),
        (math.nan, 1, [1.0, 0.5], None),
        (0.4, 7, [1.0, 0.5], None),
        (9.0, 0, [2.0, 1.0, 0.5, 0.4, 7.0, 8.0, 9.0], "loss has grown from 0.4 to 9 at step 1,200"),
        (9.0, 0, [2.0, 1.0, 0.5, 0.4, 0.3, 8.0, 9.0], None),
        (9.0, 0, [0.4, 7.0, 9.0], None),
        (0.1, 0, [2.0, 1.0, 0.001, 0.001, 0.1, 0.1, 0.1], None),
        (-9.0, 0, [-0.1, -1.0, -2.0, -3.0, -4.0, -9.0], None),
    ],
)
def test_a_loss_that_diverges_is_remarked(last: float, not_finite: int, values: list[float], text: str | None) -> None:
    remark = check_loss("loss", last, not_finite, 1200, read_history(values))
    assert (None if remark is None else remark.text) == text
    assert check_loss("accuracy", last, not_finite, 1200, read_history(values)) is None


@given(seed=st.integers(0, 2**32), count=st.integers(1, 256), noise=st.floats(0, 0.8))
def test_a_noisy_loss_that_falls_is_not_remarked(seed: int, count: int, noise: float) -> None:
    chance = random.Random(seed)
    values = [(3 / (1 + at) + 0.05) * (1 + chance.uniform(-noise, noise)) for at in range(count)]
    assert check_loss("loss", values[-1], 0, None, read_history(values)) is None


def take_samples(seconds: float, amount: float, slope: float, noise: float, seed: int) -> list[tuple[float, float]]:
    chance = random.Random(seed)
    return [(at, amount + slope * at + chance.uniform(-noise, noise)) for at in range(0, int(seconds) + 1, 10)]


@given(seed=st.integers(0, 2**32))
def test_memory_that_grows_is_remarked_with_the_time_that_is_left(seed: int) -> None:
    samples = take_samples(WINDOW, 6 * GB, 1e6, 5e6, seed)  # 0.6 GB in ten minutes
    remark = check_memory(samples, 9 * GB)
    assert remark is not None
    assert (remark.kind, remark.text) == (RemarkKind.MEMORY, "its memory grows: out of memory in about 40 m")


@given(seed=st.integers(0, 2**32), slope=st.floats(-1e6, 0), noise=st.floats(0, 2 * GB))
def test_memory_that_does_not_grow_is_not_remarked(seed: int, slope: float, noise: float) -> None:
    samples = take_samples(WINDOW, 6 * GB, slope, noise, seed)
    assert check_memory(samples, 9 * GB) is None
    assert check_memory([], 9 * GB) is None
    assert check_memory(take_samples(WINDOW / 2, 6 * GB, 1e6, 0, seed), 9 * GB) is None
    assert check_memory(take_samples(WINDOW, 2 * GB, 1e6, 0, seed), 9 * GB) is None


def test_gpus_that_do_nothing_for_ten_minutes_are_remarked() -> None:
    idle = [(float(at), 0.0) for at in range(1000, 1601, 10)]
    remark = check_gpus(idle)
    assert remark is not None
    assert (remark.kind, remark.since) == (RemarkKind.IDLE_GPU, 1000.0)
    assert check_gpus([*idle[:-1], (1600.0, 30.0)]) is None
    assert check_gpus(idle[20:]) is None


def make_marks(seconds: float, *, pause_every: int = 0, pause: float = 0.0) -> list[tuple[float, float]]:
    marks: list[tuple[float, float]] = []
    at = 0.0
    step = 0
    while at < seconds:
        marks.append((at, float(step)))
        step += 1
        at += 10.0 + (pause if pause_every and step % pause_every == 0 else 0.0)
    return marks


def test_a_rate_that_drops_by_half_for_five_minutes_is_remarked() -> None:
    marks = make_marks(1800.0)
    end, amount = marks[-1]
    slow = [*marks, *((end + 25.0 * at, amount + at) for at in range(1, 13))]
    remark = check_rate(slow, end + 300.0)
    assert remark is not None
    assert remark.text == "it does 2.4/min, and did 6/min at least"
    assert remark.since == pytest.approx(end)
    assert check_rate(slow, end + 300.0, pause=200.0) is None
    assert check_rate(slow[:-6], end + 150.0) is None


@given(seconds=st.floats(0, 6000), every=st.integers(0, 40), pause=st.floats(0, 200), later=st.floats(0, 100))
def test_a_rate_with_the_pauses_that_it_always_had_is_not_remarked(
    seconds: float, every: int, pause: float, later: float
) -> None:
    marks = make_marks(3 * (every * 10 + pause) + seconds, pause_every=every, pause=pause)
    assert not marks or check_rate(marks, marks[-1][0] + min(later, 100.0)) is None


@given(
    values=st.lists(st.tuples(st.integers(1, 20), st.integers(-5, 5)), min_size=1, max_size=50), most=st.integers(1, 60)
)
def test_a_metric_is_stalled_exactly_when_none_of_its_last_steps_was_better(
    values: list[tuple[int, int]], most: int
) -> None:
    """Compared with what the words say: no value of the last steps is less than all before."""
    steps = [sum(distance for distance, _ in values[: place + 1]) for place in range(len(values))]
    points = [(step, float(value)) for step, (_, value) in zip(steps, values, strict=True)]
    better = [step for step, value in points if all(value < other for earlier, other in points if earlier < step)]
    best = min(value for _, value in points)
    first = next(step for step, value in points if value == best)
    remark = check_stalled("loss", (best, first), steps[-1], most)
    assert (remark is None) is any(step > steps[-1] - most for step in better)


def test_a_metric_that_stalls_is_named_with_its_best_value() -> None:
    remark = check_stalled("val_loss", (0.25, 1200), 3200, 2000)
    assert remark is not None
    assert remark.kind is RemarkKind.STALLED
    assert remark.text == "val_loss has no better value since step 1,200, which had 0.25"
