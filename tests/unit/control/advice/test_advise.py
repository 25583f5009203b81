"""Advice about experiments that failed: each row of the table with real output, and which row wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.states import Reason
from riseml.control.advice.advise import KNOWN_FAILURES, advise
from riseml.control.advice.known_failure import FailedJob, recognise
from riseml.control.advice.last_lines import drop_frames

TABLE = Path(__file__).with_name("ends.txt")
CV2 = "ModuleNotFoundError: No module named 'cv2'"
CV2_ADVICE = "`cv2` is not installed in the environment: add `pip install opencv-python-headless` to `train.install`"
RESET = "ConnectionResetError: [Errno 104] Connection reset by peer"


def _read_cases() -> list[tuple[str, FailedJob, str]]:
    found = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, rest = block.partition("\n")
        printed, _, advice = rest.partition(">>>>>\n")
        name, how = title.split()
        limit = 512 if name == "out-of-memory-limit" else None
        reason, code = (Reason[how], None) if how.isupper() else (Reason.EXIT_CODE, int(how))
        found.append((name, FailedJob("4.train", reason, code, printed.split("\n")[:-1], limit, 1024), advice.strip()))
    return found


CASES = _read_cases()


def _failed(*lines: str, code: int = 1, name: str = "4.master", reason: Reason = Reason.EXIT_CODE) -> FailedJob:
    return FailedJob(name, reason, code, lines, mem=1024)


def _advise(*lines: str) -> str:
    return advise(_failed(*lines), list)


@pytest.mark.parametrize(("name", "job", "advice"), CASES, ids=[f"{name}-{at}" for at, (name, *_) in enumerate(CASES)])
def test_real_output_is_recognised_and_answered(name: str, job: FailedJob, advice: str) -> None:
    found = recognise(job, KNOWN_FAILURES)
    assert found is not None
    assert (found.failure.name, advise(job, list)) == (name, advice)


def test_every_row_has_real_output_and_its_own_name() -> None:
    names = [failure.name for failure in KNOWN_FAILURES]
    assert sorted(set(names)) == sorted(names)
    assert {name for name, *_ in CASES} == set(names)


def test_every_advice_is_one_line_with_a_next_step() -> None:
    for failure in KNOWN_FAILURES:
        assert "\n" not in failure.sentence
        assert failure.sentence[-1] not in ".:"
        assert ":" in failure.sentence or failure.role.name == "CONSEQUENCE", failure.name


@pytest.mark.parametrize("lines", [(), ("step 1 of 3",), ("ValueError: loss is not a number",), ("Killed by hand",)])
def test_nothing_is_said_of_an_end_that_is_not_in_the_table(lines: tuple[str, ...]) -> None:
    assert _advise(*lines) == ""


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-27 22:15:01.123456: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:152] failed call to"
        " cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        "/usr/lib/torch/cuda/__init__.py:128: UserWarning: CUDA initialization: Found no NVIDIA driver on your system.",
    ],
)
def test_what_a_framework_prints_whenever_it_starts_without_a_gpu_is_no_cause(line: str) -> None:
    assert _advise(*drop_frames([line, "ValueError: the loss is not a number"])) == ""


def test_what_stands_before_another_exception_is_only_probable() -> None:
    assert _advise(CV2) == CV2_ADVICE
    assert _advise(CV2, "During handling of the above exception:", "app.Failed: no") == CV2_ADVICE
    assert _advise(CV2, "", "ValueError: no model can be built") == f"probably: {CV2_ADVICE}"


def test_what_stands_far_from_the_end_is_only_probable_and_older_lines_do_not_count() -> None:
    later = [f"step {number}" for number in range(10)]
    assert _advise(CV2, *later) == f"probably: {CV2_ADVICE}"
    assert _advise(CV2, *later * 4) == ""


def test_the_last_of_several_failures_counts() -> None:
    assert _advise("OSError: [Errno 28] No space left on device", CV2) == CV2_ADVICE


def test_what_the_engine_reports_counts_more_than_any_line() -> None:
    assert "1024 MiB were guaranteed" in advise(_failed(CV2, code=137, reason=Reason.OUT_OF_MEMORY), list)


def test_an_exit_code_alone_counts_less_than_any_line() -> None:
    assert "CRLF" in advise(_failed("/usr/bin/env: 'python3\\r': No such file or directory", code=127), list)


def test_a_job_that_lost_its_connection_names_the_job_that_failed_by_itself() -> None:
    others = [_failed("x", name="4.worker.2", code=3), _failed(CV2, name="4.worker.1")]
    told = advise(_failed(RESET), lambda: others)
    expected = "probably a consequence: the other side of a connection ended it, and 4.worker.1 failed as well: "
    assert told == expected + CV2_ADVICE


def test_a_job_that_lost_its_connection_names_a_job_whose_failure_is_not_known() -> None:
    others = [_failed(RESET, name="4.worker.1"), _failed("x", name="4.worker.2", code=3)]
    assert "and 4.worker.2 failed as well, with exit code 3: see `riseml logs 4.worker.2`" in advise(
        _failed(RESET), lambda: others
    )


def test_a_lost_connection_without_another_failure_is_reported_as_it_is() -> None:
    assert _advise(RESET).endswith("riseml saw no other job fail: see the last lines of what it was connected to")


def test_a_cause_counts_more_than_the_connections_that_break_while_the_job_ends() -> None:
    told = advise(_failed(CV2, RESET), pytest.fail)
    assert told == f"probably: {CV2_ADVICE}"


@pytest.mark.parametrize("line", ["a" * 2_000_000, "'" * 100_000, "No module named '" + "x." * 500_000, "{code}" * 9])
def test_a_hostile_line_takes_no_time_and_is_never_a_template(line: str) -> None:
    assert len(_advise(*[line] * 40)) < 1000


def test_braces_in_a_name_are_printed_as_they_are() -> None:
    assert "{limit}.yaml" in _advise("FileNotFoundError: [Errno 2] No such file or directory: '{limit}.yaml'")
