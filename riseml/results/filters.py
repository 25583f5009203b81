"""Conditions of `--where`: `lr<0.1`, `state = FINISHED and accuracy >= 0.9`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.results.column_names import QUOTED
from riseml.results.rows import Columns, Reader, ResultRow, Value, read_number

_HINT = (
    "write NAME<VALUE, with one of < <= > >= = !=, and `and` between several: 'lr<0.1 and state=FINISHED'; a name with "
    "spaces or signs needs quotes: '\"val loss\" < 0.1'"
)
_LONGEST = 1_000  # characters of one text
_MOST = 50  # conditions of one text
_CONDITION = re.compile(
    rf"\s*(?P<name>(?:(?:parameters|metrics)\.)?(?:{QUOTED})(?:\.[a-z]+)?|[^<>=!'\"\s,&()]+)\s*"
    r"(?P<sign><=|>=|==|!=|=|<|>)\s*"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s<>=!'\",&()]+)"
)
_AND = re.compile(r"\s+and(?=\s|$)|\s*,|\s*&&", re.IGNORECASE)
_ORDER: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a column with a value."""

    name: str  # name of the column
    sign: str  # `<`, `<=`, `>`, `>=`, `=` or `!=`
    value: str  # as written, without quotes


def parse_where(text: str) -> tuple[Condition, ...]:
    """Return the conditions of a text; all of them must hold.

    Example: `parse_where("lr < 0.1 and optimizer = 'adam w'")`.

    Raises:
        UsageError: the text is something else; the message shows where.
    """
    if len(text) > _LONGEST:
        raise UsageError(f"--where has {len(text):,} characters; at most {_LONGEST:,} are allowed")
    conditions: list[Condition] = []
    at = 0
    while True:
        match = _CONDITION.match(text, at)
        if match is None:
            raise UsageError(f"--where {text!r}: {_describe_fault(text, at)}", _HINT)
        sign = "=" if match["sign"] == "==" else match["sign"]
        condition = Condition(
            match["name"], sign, match["value"][1:-1] if match["value"][0] in "'\"" else match["value"]
        )
        if sign in _ORDER and _read_amount(condition) is None:
            raise UsageError(
                f"--where {text!r}: {sign} compares numbers, and {condition.value!r} is not a number",
                "use = or != for a text",
            )
        conditions.append(condition)
        at = match.end()
        if not text[at:].strip():
            return tuple(conditions)
        joint = _AND.match(text, at)
        if joint is None or len(conditions) == _MOST:
            raise UsageError(f"--where {text!r}: {_describe_fault(text, at)}", _HINT)
        at = joint.end()


def _describe_fault(text: str, at: int) -> str:
    remainder = text[at:].strip()
    if re.match(r"or\b|\|", remainder, re.IGNORECASE):
        return "`or` is not supported: run the command twice"
    if remainder[:1] in ("(", ")"):
        return "parentheses are not supported"
    return f"no condition begins at {remainder[:40]!r}" if remainder else "a condition is missing at the end"


def filter_rows(rows: Sequence[ResultRow], conditions: Sequence[Condition], columns: Columns) -> list[ResultRow]:
    """Return the rows that meet all conditions. A row without a value meets none but `!=`.

    Raises:
        UsageError: no row has a column of this name.
    """
    left = list(rows)
    for test in [_make_test(condition, columns.find_reader(condition.name)) for condition in conditions]:
        left = [row for row in left if test(row)]
    return left


def _make_test(condition: Condition, read: Reader) -> Callable[[ResultRow], bool]:
    amount = _read_amount(condition)
    if condition.sign in _ORDER and amount is not None:
        compare = _ORDER[condition.sign]
        return lambda row: isinstance(value := read(row), float) and compare(value, amount)
    if condition.sign == "=":
        return lambda row: _equals(read(row), condition.value, amount)
    return lambda row: not _equals(read(row), condition.value, amount)


def _equals(value: Value, text: str, amount: float | None) -> bool:
    if isinstance(value, float):
        return value == amount
    return value == text


def _read_amount(condition: Condition) -> float | None:
    """Return the value as a number; the column `time` also takes `90s`, `10m`, `2h` and `1d`."""
    unit = _SECONDS.get(condition.value[-1:])
    if condition.name == "time" and unit is not None:
        number = read_number(condition.value[:-1])
        return None if number is None else number * unit
    return read_number(condition.value)
