"""Failures of connections: to other machines, and to the other jobs, each row with real output."""

from __future__ import annotations

import pytest

from riseml.control.advice.connection_failures import CONNECTION_FAILURES
from tests.unit.control.advice.cases import Case, assert_advice, list_cases


@pytest.mark.parametrize("case", list_cases(CONNECTION_FAILURES), ids=lambda case: case[0])
def test_real_output_is_recognised_and_answered(case: Case) -> None:
    assert_advice(case)
