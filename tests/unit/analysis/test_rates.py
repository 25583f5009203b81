"""How fast jobs are, from bars, the steps of reports and metrics, and when a rate is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.analysis.progress import Progress
from riseml.analysis.rates import Rate, StepMarks, add_step, find_rates, read_report_step, read_told_rates
from riseml.analysis.remarks import RemarkKind, check_rate

BAR = Progress(3, 10, "epoch", 0.3, 0.5, None, None, 0)


def take_steps(*steps: float, seconds: float = 10.0) -> StepMarks:
    marks = StepMarks()
    for at, step in enumerate(steps):
        marks = add_step(marks, step, at * seconds)
    return marks


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((0, 20, 40, 60, 80), 2.0),
        ((0, 20, 40), None),  # too few
        ((0, 20, 20, 20, 40, 60, 80), 4 / 3),
        ((500, 0, 20, 40, 60), 2.0),  # another training begins
        ((0, 20, 40, 60, 80, 5), None),
    ],
)
def test_steps_that_grow_are_a_rate(steps: tuple[float, ...], expected: float | None) -> None:
    rates = find_rates(None, take_steps(*steps), {}, 10 * (len(steps) - 1))
    assert [rate.unit for rate in rates] == ["step"] * (expected is not None)
    assert [rate.per_second for rate in rates] == pytest.approx([] if expected is None else [expected])


def test_steps_that_came_at_once_and_those_of_long_ago_are_no_rate() -> None:
    """A server that starts again reads the last lines of a log in one piece."""
    assert find_rates(None, take_steps(*range(50), seconds=0), {}, 1) == ()
    assert find_rates(None, take_steps(0, 20, 40, 60, 80), {}, 40 + 51) == ()


def test_a_bar_comes_before_steps_and_both_before_what_a_job_tells() -> None:
    steps = take_steps(0, 20, 40, 60, 80)
    told = {"sample": (30.0, 128.0), "step": (30.0, 9.0)}
    assert find_rates(BAR, steps, told, 40) == (Rate("epoch", 0.5), Rate("step", 2.0), Rate("sample", 128.0))
    assert find_rates(replace(BAR, unit="step"), steps, {}, 40) == (Rate("step", 0.5),)
    for nothing in (replace(BAR, unit="%"), replace(BAR, per_second=None), None):
        assert find_rates(nothing, StepMarks(), {"sample": (0.0, 1.0)}, 601) == ()


@pytest.mark.parametrize(
    ("line", "step", "rates"),
    [
        (b'riseml.report {"step": 7, "loss": 0.5}', 7, {}),
        (b'riseml.report {"loss": 0.5}', None, {}),
        (b'riseml.report {"step": -7, "loss": 0.5}', None, {}),
        (b'riseml.report {"step": 71', None, {}),  # cut
        (
            b'riseml.report {"train/samples_per_second": 12.5, "tokens_per_second": 1e3}',
            None,
            {"sample": 12.5, "token": 1000},
        ),
        (b'riseml.report {"train_samples_per_second": 12.5}', None, {"sample": 12.5}),
        (b'riseml.report {"samples_per_second": nan, "resamples_per_second": 2}', None, {}),
        (b'riseml.report {"images_per_second": 1.2.3}', None, {}),
    ],
)
def test_reports_tell_steps_and_rates(line: bytes, step: int | None, rates: dict[str, float]) -> None:
    assert (read_report_step(line), read_told_rates(line)) == (step, rates)


def test_a_drop_by_half_of_the_steps_is_a_remark_with_its_begin() -> None:
    """Two steps a second for half an hour, and half a step a second after that."""
    marks = StepMarks()
    now = step = 0.0
    while now < 1800 + 300:
        now += 10
        step += 20 if now <= 1800 else 5
        marks = add_step(marks, step, now)
        remark = check_rate(marks.marks, now, marks.pause)
        assert remark is None or now > 1800 + 200
    assert remark is not None
    assert remark.kind is RemarkKind.SLOWER
    assert remark.since == pytest.approx(1800, abs=10)
