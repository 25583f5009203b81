"""Texts that are numbers, and what of their digits a number would lose. Pure.

A parameter is the text that its author wrote. It is compared, sorted and drawn as a number where it is written as one,
exactly: 9007199254740993 is not 9007199254740992. `01` is a text, as it is for riseml.yml.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal

from riseml.base.records import dataclass

_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)
_ENDS_IN_ZERO = re.compile(r"[-+]?[0-9]*\.[0-9]+0([eE].*)?", re.ASCII)
_LONGEST = 40  # characters
_LARGEST = 2**63 - 1  # the largest whole number that tables of numbers hold


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of texts that are all numbers, with every digit that they are written with."""

    values: tuple[int | float | None, ...]  # None: the row has no value
    whole: bool  # all of them are whole numbers


def read_exact(text: str) -> Decimal | None:
    """Return the number that a text is, exactly; None for any other text (`nan`, `1_000`, `0x10`, `01`)."""
    return Decimal(text) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None


def read_number(text: str) -> float | None:
    """Return the number that a text is, as a float; None for any other text."""
    return float(text) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None


def are_numbers(texts: Collection[str]) -> bool:
    """Return True when all texts are numbers, and no two of them are one number in other digits, as 2.1 and 2.10 are.

    An exponent is no other digit: `1e-3` and `0.001` are one number.

    Example:
        >>> are_numbers(["0.001", "1e-3", "7"]), are_numbers(["2.1", "2.10"]), are_numbers(["01", "1"])
        (True, False, False)
    """
    decimals: dict[Decimal, int] = {}
    for text in texts:
        number = read_exact(text)
        if number is None:
            return False
        count = max(0, -int(number.as_tuple().exponent))
        if decimals.setdefault(number, count) != count:
            return False
    return True


def read_column(texts: Sequence[str | None]) -> NumberColumn | None:
    """Return a column as numbers; None where one of its texts is not a number, or a number would lose its digits.

    Digits that would be lost are zeros at the end (`2.10`) and those that a float does not hold.
    """
    values: list[int | float | None] = []
    for text in texts:
        value = None if text is None else _read_whole_digits(text)
        if value is None and text is not None:
            return None
        values.append(value)
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    if all(isinstance(value, int) for value in numbers):
        return NumberColumn(tuple(values), whole=True)
    whole = (value for value in numbers if isinstance(value, int))
    if any(Decimal(repr(float(value))) != value for value in whole):  # a float is shown with its fewest digits
        return None
    return NumberColumn(tuple(None if value is None else float(value) for value in values), whole=False)


def _read_whole_digits(text: str) -> int | float | None:
    number = read_exact(text)
    if number is None or _ENDS_IN_ZERO.fullmatch(text):
        return None
    if _WHOLE.fullmatch(text):
        return int(text) if abs(int(text)) <= _LARGEST else None
    value = float(text)
    return value if Decimal(repr(value)) == number else None
