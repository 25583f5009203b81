"""Which row of the table of failures explains the end of a job."""

from __future__ import annotations

import pytest

from riseml.base.states import Reason
from riseml.control.advice.advise import advise
from tests.unit.control.advice.cases import CV2, CV2_ADVICE, RESET, advise_lines, make_failed


def test_what_stands_before_another_exception_is_only_probable() -> None:
    assert advise_lines(CV2) == CV2_ADVICE
    assert advise_lines(CV2, "During handling of the above exception:", "app.Failed: no") == CV2_ADVICE
    assert advise_lines(CV2, "", "ValueError: no model can be built") == f"probably: {CV2_ADVICE}"


def test_what_stands_far_from_the_end_is_only_probable_and_older_lines_do_not_count() -> None:
    later = [f"step {number}" for number in range(10)]
    assert advise_lines(CV2, *later) == f"probably: {CV2_ADVICE}"
    assert advise_lines(CV2, *later * 4) == ""


def test_the_last_of_several_failures_counts() -> None:
    assert advise_lines("OSError: [Errno 28] No space left on device", CV2) == CV2_ADVICE


def test_what_the_engine_reports_counts_more_than_any_line() -> None:
    assert "1024 MiB were guaranteed" in advise(make_failed(CV2, code=137, reason=Reason.OUT_OF_MEMORY), list)


def test_an_exit_code_alone_counts_less_than_any_line() -> None:
    assert "CRLF" in advise(make_failed("/usr/bin/env: 'python3\\r': No such file or directory", code=127), list)


def test_a_cause_counts_more_than_the_connections_that_break_while_the_job_ends() -> None:
    told = advise(make_failed(CV2, RESET), pytest.fail)
    assert told == f"probably: {CV2_ADVICE}"


@pytest.mark.parametrize("line", ["a" * 2_000_000, "'" * 100_000, "No module named '" + "x." * 500_000, "{code}" * 9])
def test_a_hostile_line_takes_no_time_and_is_never_a_template(line: str) -> None:
    assert len(advise_lines(*[line] * 40)) < 1000


def test_braces_in_a_name_are_printed_as_they_are() -> None:
    assert "{limit}.yaml" in advise_lines("FileNotFoundError: [Errno 2] No such file or directory: '{limit}.yaml'")
