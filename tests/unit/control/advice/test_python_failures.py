"""Failures of Python code: modules, versions, arguments, each row with real output."""

from __future__ import annotations

import pytest

from riseml.control.advice.python_failures import PYTHON_FAILURES
from tests.unit.control.advice.cases import Case, assert_advice, list_cases


@pytest.mark.parametrize("case", list_cases(PYTHON_FAILURES), ids=lambda case: case[0])
def test_real_output_is_recognised_and_answered(case: Case) -> None:
    assert_advice(case)
