"""Values of Python as the texts of `-p` and `--set`."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

from riseml.base.errors import UsageError
from riseml.python_api.parameter_texts import list_pairs


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e-05, "1e-05"),
        (3, "3"),
        (9007199254740993, "9007199254740993"),
        (True, "true"),
        (None, "null"),
        ("2.10", "2.10"),
        ("0.1,0.01", "0.1,0.01"),
        ([1, "a"], '[1, "a"]'),
        (range(3), "[0, 1, 2]"),
        ((0.5,), "[0.5]"),
        ({"min": 0, "max": 1}, '{"min": 0, "max": 1}'),
        (numpy.float64(0.25), "0.25"),
        (numpy.arange(2), "[0, 1]"),
        ("ü\n", "ü\n"),
    ],
)
def test_a_value_has_its_text(value: object, text: str) -> None:
    assert list_pairs({"p": value}, "parameters") == [("p", text)]


def test_nothing_is_no_pair() -> None:
    assert list_pairs(None, "parameters") == list_pairs({}, "settings") == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([("a", 1)], "parameters is list, not a dict"),
        ("lr=1", "parameters is str, not a dict"),
        ({1: 2}, "a name in parameters is 1"),
        ({"": 2}, "a name in parameters is ''"),
        ({"lr": math.nan}, r"parameters\['lr'\] is nan"),
        ({"lr": [math.inf]}, r"parameters\['lr'\] is inf"),
        ({"lr": object()}, r"parameters\['lr'\] is of type object"),
        ({"lr": b"x"}, r"parameters\['lr'\] is of type bytes"),
    ],
)
def test_other_values_are_refused(values: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list_pairs(values, "parameters")
