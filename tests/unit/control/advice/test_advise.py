"""Advice about experiments that failed: its form, and what it says of several jobs."""

from __future__ import annotations

import pytest

from riseml.control.advice.advise import KNOWN_FAILURES, advise
from riseml.control.advice.last_lines import drop_frames
from tests.unit.control.advice.cases import CV2, CV2_ADVICE, RESET, advise_lines, list_cases, make_failed


def test_every_row_has_real_output_and_its_own_name() -> None:
    names = [failure.name for failure in KNOWN_FAILURES]
    assert sorted(set(names)) == sorted(names)
    assert {name for name, *_ in list_cases(KNOWN_FAILURES)} == set(names)


def test_every_advice_is_one_line_with_a_next_step() -> None:
    for failure in KNOWN_FAILURES:
        assert "\n" not in failure.sentence
        assert failure.sentence[-1] not in ".:"
        assert ":" in failure.sentence or failure.role.name == "CONSEQUENCE", failure.name


@pytest.mark.parametrize("lines", [(), ("step 1 of 3",), ("ValueError: loss is not a number",), ("Killed by hand",)])
def test_nothing_is_said_of_an_end_that_is_not_in_the_table(lines: tuple[str, ...]) -> None:
    assert advise_lines(*lines) == ""


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-27 22:15:01.123456: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:152] failed call to"
        " cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        "/usr/lib/torch/cuda/__init__.py:128: UserWarning: CUDA initialization: Found no NVIDIA driver on your system.",
    ],
)
def test_what_a_framework_prints_whenever_it_starts_without_a_gpu_is_no_cause(line: str) -> None:
    assert advise_lines(*drop_frames([line, "ValueError: the loss is not a number"])) == ""


def test_a_job_that_lost_its_connection_names_the_job_that_failed_by_itself() -> None:
    others = [make_failed("x", name="4.worker.2", code=3), make_failed(CV2, name="4.worker.1")]
    told = advise(make_failed(RESET), lambda: others)
    expected = "probably a consequence: the other side of a connection ended it, and 4.worker.1 failed as well: "
    assert told == expected + CV2_ADVICE


def test_a_job_that_lost_its_connection_names_a_job_whose_failure_is_not_known() -> None:
    others = [make_failed(RESET, name="4.worker.1"), make_failed("x", name="4.worker.2", code=3)]
    assert "and 4.worker.2 failed as well, with exit code 3: see `riseml logs 4.worker.2`" in advise(
        make_failed(RESET), lambda: others
    )


def test_a_lost_connection_without_another_failure_is_reported_as_it_is() -> None:
    assert advise_lines(RESET).endswith("riseml saw no other job fail: see the last lines of what it was connected to")
