"""The conditions of `--where`: which rows they choose, and how a mistake is named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import UsageError
from riseml.results.filters import filter_rows, parse_where
from tests.unit.results.result_rows import COLUMNS, ROWS, names


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("lr<0.01", ["3", "4"]),
        ("lr <= 1e-2", ["2", "3", "4"]),
        ("lr=0.1", ["1", "10"]),
        ("lr == auto", ["5"]),
        ("lr != auto", ["1", "2", "3", "4", "10"]),
        ("opt='adam w'", ["1", "2", "3", "4"]),
        ('opt != "adam w"', ["5", "10"]),
        ("layers>9", ["5"]),
        ("accuracy>=0.9", ["4", "5", "10"]),
        ("accuracy.max >= 0.9 and accuracy.max<0.99", ["1", "2", "10"]),
        ("accuracy.min<0.5", ["1"]),
        ("accuracy.count>1, state = FINISHED", ["1", "2"]),
        ("accuracy.step=7 && time<=2m", ["1", "2"]),
        ("metrics.accuracy>0 AND parameters.lr>0.05", ["1", "10"]),
        ("host=h1 and workers=1 and time>9m", ["10"]),
        ("id=144.3", ["3"]),
    ],
)
def test_conditions_choose_rows(condition: str, wanted: list[str]) -> None:
    assert names(filter_rows(ROWS, parse_where(condition), COLUMNS)) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a condition is missing at the end"),
        ("lr", "no condition begins at 'lr'"),
        ("lr<", "no condition begins at 'lr<'"),
        ("lr<0.1 and", "a condition is missing at the end"),
        ("lr<0.1 lr>1", "no condition begins at 'lr>1'"),
        ("lr<0.1 or lr>1", "`or` is not supported: run the command twice"),
        ("lr<0.1 || lr>1", "`or` is not supported"),
        ("(lr<0.1)", "parentheses are not supported"),
        ("lr<fast", "< compares numbers, and 'fast' is not a number"),
        ("opt='adam", 'no condition begins at "opt=\'adam"'),
        ("lr=>1", "no condition begins at"),
        ("x" * 2000, "--where has 2,000 characters"),
        (",".join(["a=1"] * 60), "no condition begins at"),
    ],
)
def test_an_invalid_condition_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_where(text)
    assert message in refused.value.message


@given(st.text(alphabet="lraor<>=! '\"().,&|0123456789e-\n", max_size=30))
@settings(max_examples=50, deadline=None)
def test_any_text_is_conditions_or_refused(text: str) -> None:
    try:
        found = parse_where(text)
    except UsageError:
        return
    assert found
    assert all(one.name and one.sign for one in found)


def test_a_value_in_quotes_keeps_the_other_quotes() -> None:
    assert [one.value for one in parse_where("""opt='"adam"' and opt="'a" and opt='' """)] == ['"adam"', "'a", ""]
