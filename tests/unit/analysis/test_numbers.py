"""Which texts are numbers, and when a column of them may become numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from riseml.analysis.numbers import are_numbers, read_column, read_exact, read_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-3", 0.001),
        ("-.5", -0.5),
        ("7", 7.0),
        ("0.10", 0.1),
        *((text, None) for text in ("nan", "1_0", "0x1", "", "1" * 50, "01", "001", "-007", "1 ", "\u0661")),
    ],
)
def test_only_plain_numbers_are_numbers(text: str, number: float | None) -> None:
    assert read_number(text) == number
    assert read_exact(text) == (None if number is None else Decimal(text))


def test_a_number_keeps_all_its_digits() -> None:
    assert read_exact("9007199254740993") != read_exact("9007199254740992")
    assert read_exact("1e5") == read_exact("100000")


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["0.1", "1e-3", None], (0.1, 0.001, None)),
        (["1", "-2", None], (1, -2, None)),
        (["9007199254740993", "1"], (9007199254740993, 1)),
        (["9007199254740993", "0.5"], None),
        (["2.1", "2.10"], None),
        (["2.10"], None),
        (["1.0", "0.5"], (1.0, 0.5)),
        (["1e5", "10"], (100000.0, 10.0)),
        (["01", "1"], None),
        (["auto", "1"], None),
        (["0.12345678901234567890123"], None),
        ([str(2**63)], None),
        ([None], None),
        ([], None),
    ],
)
def test_a_column_is_of_numbers_where_no_digit_is_lost(
    texts: list[str | None], values: tuple[float | None, ...] | None
) -> None:
    found = read_column(texts)
    assert (None if found is None else found.values) == values
    if found is not None:
        kind = int if found.whole else float
        assert all(value is None or type(value) is kind for value in found.values)


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-1000, 1000, places=2).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@given(st.lists(NUMBERS, min_size=1, max_size=5))
@example(["58736295434599312", "0.01"])  # a float holds it, and shows it with a zero at the end
def test_texts_that_differ_stay_different_as_numbers(texts: list[str]) -> None:
    if are_numbers(texts):
        exact = {read_exact(text) for text in texts}
        decimals = {(read_exact(text), len(text.partition(".")[2])) for text in texts if "e" not in text}
        assert len(exact) >= len(decimals)
    column = read_column(list(texts))
    if column is not None:
        assert [Decimal(repr(value)) for value in column.values] == [read_exact(text) for text in texts]
