"""Conditions of `--where`: `lr<0.1`, `state = FINISHED and accuracy >= 0.9`."""

from __future__ import annotations

import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from riseml.analysis.column_names import QUOTED
from riseml.analysis.moments import read_period
from riseml.analysis.numbers import read_exact
from riseml.analysis.rows import Columns, ComparableReader, ResultRow
from riseml.base.annotations import Annotation
from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.base.state_words import name_state
from riseml.base.states import Reason, State
from riseml.spec.scalars.quantities import parse_duration
from riseml.spec.scalars.texts import BadText

_HINT = (
    "write NAME<VALUE, with one of < <= > >= = !=, and `and` between several: 'lr<0.1 and state=FINISHED'; a name with "
    "spaces or signs needs quotes: '\"val loss\" < 0.1'; project:toast finds a part of a text; tag:baseline, "
    "name:warm, star and archived are what users say; -state=FAILED finds all others"
)
_LONGEST = 1_000  # characters of one text
_MOST = 50  # conditions of one text
_CONDITION = re.compile(
    rf"\s*(?P<minus>-)?(?P<name>(?:(?:parameters|metrics)\.)?(?:{QUOTED})(?:\.[a-z]+)?|(?!-)[^<>=!'\"\s,&()]+)\s*"
    r"(?P<sign><=|>=|==|!=|=|<|>|:)\s*"
    rf"(?P<value>{QUOTED}|[^\s<>=!'\",&()]+)",
    re.DOTALL,
)
_LABEL = re.compile(
    rf"\s*(?P<minus>-)?(?:(?P<kind>tag|name)\s*:\s*(?P<word>{QUOTED}|[^\s,&()'\"]+)"
    r"|(?P<mark>starred|star|archived)(?![\w.-])(?!\s*[<>=!]))",
    re.IGNORECASE,
)
_AND = re.compile(r"\s+and(?=\s|$)|\s*,|\s*&&", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\\"'])")
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MOMENTS = ("started", "ended", "created")
_STATES = frozenset({*(state.value for state in State), name_state(State.FINISHED.value, Reason.STOPPED_EARLY.value)})
_MOST_EXAMPLES = 3

RowTest = Callable[[ResultRow], bool]

_LABEL_TESTS: Mapping[str, Callable[[Annotation, str], bool]] = {
    "tag": lambda annotation, value: value in annotation.tags,
    "name": lambda annotation, value: value.lower() in annotation.name.lower(),
    "star": lambda annotation, _: annotation.starred,
    "archived": lambda annotation, _: annotation.archived,
}
"""Conditions on what users say."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a column with a value."""

    name: str  # name of the column
    sign: str  # `<`, `<=`, `>`, `>=`, `=`, `!=`, or `:` for a part of a text, and for what users say: `_LABEL_TESTS`
    value: str  # as written, without quotes
    quoted: bool = False  # it stood in quotes: a parameter is compared with the text, whatever the text is
    negated: bool = False  # it must not hold


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
        if (match := _LABEL.match(text, at)) is not None:
            conditions.append(_read_label(match))
        elif (match := _CONDITION.match(text, at)) is not None:
            conditions.append(_read_condition(text, match))
        else:
            raise UsageError(f"--where {text!r}: {_describe_fault(text, at)}", _HINT)
        at = match.end()
        if not text[at:].strip():
            return tuple(conditions)
        joint = _AND.match(text, at)
        if joint is None or len(conditions) == _MOST:
            raise UsageError(f"--where {text!r}: {_describe_fault(text, at)}", _HINT)
        at = joint.end()


def _read_label(match: re.Match[str]) -> Condition:
    """Return a condition on what users say: `tag:baseline`, `star`."""
    if match["mark"] is not None:
        mark = "archived" if match["mark"].lower() == "archived" else "star"
        return Condition(mark, ":", "", negated=match["minus"] is not None)
    word = match["word"]
    value = _ESCAPED.sub(r"\1", word[1:-1]) if word[0] in "'\"" else word
    text = unicodedata.normalize("NFC", value)
    return Condition(match["kind"].lower(), ":", text, quoted=word != value, negated=match["minus"] is not None)


def _read_condition(text: str, match: re.Match[str]) -> Condition:
    sign = "=" if match["sign"] == "==" else match["sign"]
    quoted = match["value"][0] in "'\""
    value = _ESCAPED.sub(r"\1", match["value"][1:-1]) if quoted else match["value"]
    condition = Condition(match["name"], sign, value, quoted, negated=match["minus"] is not None)
    if sign in _ORDER and condition.name not in _MOMENTS and _read_amount(condition) is None:
        raise UsageError(
            f"--where {text!r}: {sign} compares numbers, and {value!r} is not a number", "use = or != for a text"
        )
    return condition


def _describe_fault(text: str, at: int) -> str:
    remainder = text[at:].strip()
    if re.match(r"or\b|\|", remainder, re.IGNORECASE):
        return "`or` is not supported: run the command twice"
    if remainder[:1] in ("(", ")"):
        return "parentheses are not supported"
    return f"no condition begins at {remainder[:40]!r}" if remainder else "a condition is missing at the end"


def filter_rows(
    rows: Sequence[ResultRow], conditions: Sequence[Condition], columns: Columns, now: datetime
) -> list[ResultRow]:
    """Return the rows that meet all conditions. A row without a value meets none but `!=`.

    `=` means the text of a parameter where a row has this text, and else its number: `v=2.10` is not 2.1, and `lr=0.1`
    finds 1e-1 where nothing is written 0.1.

    Args:
        rows: what is chosen from.
        conditions: of `parse_where`.
        columns: find the columns of the rows.
        now: what `started>now-2h` counts from.

    Raises:
        UsageError: no row has a column of this name, or a column cannot be compared with its value.
    """
    tests = [(_make_test(condition, rows, columns, now), not condition.negated) for condition in conditions]
    return [row for row in rows if all(test(row) is expected for test, expected in tests)]


def filter_by_words(rows: Sequence[ResultRow], words: Sequence[str]) -> list[ResultRow]:
    """Return the rows that have all of these words somewhere: in the ID, project, state, user, name, tags, parameters
    or hosts. A word with a minus before it must be nowhere. Case does not matter."""
    sought = [(word.removeprefix("-").lower(), not word.startswith("-")) for word in words if word.strip("-")]
    if not sought:
        return list(rows)
    return [row for row in rows for text in [_join_texts(row)] if all((word in text) is want for word, want in sought)]


def _join_texts(row: ResultRow) -> str:
    parameters = (f"{name}={value}" for name, value in row.parameters.items())
    own = (row.name, row.project, name_state(row.state, row.reason), row.user, row.kind, row.annotation.name)
    return "\n".join((*own, *row.annotation.tags, *parameters, *row.hosts)).lower()


def list_filter_notes(rows: Sequence[ResultRow], conditions: Sequence[Condition], columns: Columns) -> Iterator[str]:
    """Yield what users may not expect of their conditions: which texts are no numbers, and which number is written
    otherwise.
    """
    for condition in dict.fromkeys(conditions):
        kind, name, _ = columns.resolve(condition.name)
        if condition.sign == ":" or kind != "parameters":
            continue
        texts = Counter(text for row in rows if (text := row.parameters.get(name)) is not None)
        if condition.sign in _ORDER:
            yield from describe_mixed(name, texts, f"{condition.sign} compares the numbers alone")
        elif not condition.quoted and condition.value in texts:
            yield from _describe_equal(name, condition.value, texts)


def describe_mixed(name: str, texts: Mapping[str, int], consequence: str) -> Iterator[str]:
    """Yield a sentence about a parameter that is a number in some experiments, and in others a text.

    Args:
        name: of the parameter.
        texts: in how many experiments it has each text.
        consequence: what follows for these.
    """
    words = [text for text in texts if read_exact(text) is None]
    if words and len(words) < len(texts):
        examples = ", ".join(repr(text) for text in words[:_MOST_EXAMPLES])
        count = sum(texts[text] for text in words)
        yield (
            f"{name} mixes numbers and texts: it is a text in {count:,} of {sum(texts.values()):,} experiments "
            f"({examples}); {consequence}"
        )


def _describe_equal(name: str, value: str, texts: Mapping[str, int]) -> Iterator[str]:
    number = read_exact(value)
    equal = [text for text in texts if number is not None and text != value and read_exact(text) == number]
    if equal:
        count = sum(texts[text] for text in equal)
        yield (
            f"{name}={value} is the text {value}; the number is also written {', '.join(equal[:_MOST_EXAMPLES])} in "
            f"{count:,} of {sum(texts.values()):,} experiments: '{name}>={value} and {name}<={value}' finds all"
        )


def _make_test(condition: Condition, rows: Sequence[ResultRow], columns: Columns, now: datetime) -> RowTest:
    if condition.sign == ":" and condition.name in _LABEL_TESTS:
        meets = _LABEL_TESTS[condition.name]
        return lambda row: meets(row.annotation, condition.value)
    if condition.sign == ":":
        return _make_part_test(condition, columns)
    kind, name, _ = columns.resolve(condition.name)
    if kind == "fixed" and name in _MOMENTS:
        return _make_moment_test(condition, columns, now)
    if kind == "fixed" and name == "state":
        condition = _check_state(condition)
    read = columns.find_comparable(condition.name)
    if condition.sign in _ORDER:
        return _make_order_test(condition, read)
    of_parameter = kind == "parameters"
    equals = _make_parameter_test(condition, name, rows) if of_parameter else _make_value_test(condition, read)
    return equals if condition.sign == "=" else lambda row: not equals(row)


def _make_part_test(condition: Condition, columns: Columns) -> RowTest:
    """Return the test for a text that has the value of a condition in it, in whatever case."""
    read = columns.find_reader(condition.name)
    part = condition.value.lower()

    def test(row: ResultRow) -> bool:
        value = read(row)
        return value is not None and part in (value if isinstance(value, str) else f"{value:g}").lower()

    return test


def _make_moment_test(condition: Condition, columns: Columns, now: datetime) -> RowTest:
    try:
        period = read_period(condition.value, now)
    except UsageError as error:
        written = f"{condition.name}{condition.sign}{condition.value[:80]}"
        raise UsageError(f"--where {written}: {error.message}", error.hint) from error
    read = columns.find_reader(condition.name)

    def test(row: ResultRow) -> bool:
        moment = read(row)
        if not isinstance(moment, str):
            return condition.sign == "!="
        return period.meets(datetime.fromisoformat(moment), condition.sign)

    return test


def _check_state(condition: Condition) -> Condition:
    """Return a condition of the state with the word as the table shows it.

    Raises:
        UsageError: no state has this word.
    """
    word = condition.value.upper()
    if word in _STATES:
        return Condition(condition.name, condition.sign, word)
    written = f"{condition.name}{condition.sign}{condition.value[:80]}"
    raise UsageError(f"--where {written}: there is no such state", f"there are {', '.join(sorted(_STATES))}")


def _make_order_test(condition: Condition, read: ComparableReader) -> RowTest:
    compare = _ORDER[condition.sign]
    exact = _read_amount(condition)
    amounts = {Decimal: exact, float: None if exact is None else float(exact)}

    def test(row: ResultRow) -> bool:
        value = read(row)
        if value is None or isinstance(value, str):
            return False
        return compare(value, amounts[Decimal if isinstance(value, Decimal) else float])

    return test


def _make_parameter_test(condition: Condition, name: str, rows: Sequence[ResultRow]) -> RowTest:
    """Return the test for a parameter that equals the text of a condition, or its number where no row has the text."""
    text = condition.value
    number = read_exact(text)
    if condition.quoted or number is None or any(row.parameters.get(name) == text for row in rows):
        return lambda row: row.parameters.get(name) == text
    return lambda row: (value := row.parameters.get(name)) is not None and read_exact(value) == number


def _make_value_test(condition: Condition, read: ComparableReader) -> RowTest:
    exact = _read_amount(condition)
    amount = None if exact is None else float(exact)

    def test(row: ResultRow) -> bool:
        value = read(row)
        return value == condition.value if isinstance(value, str) else value is not None and value == amount

    return test


def _read_amount(condition: Condition) -> Decimal | None:
    """Return the value as a number; the column `time` also takes durations: `90s`, `10m`, `1h30m`."""
    number = read_exact(condition.value)
    if number is None and condition.name == "time":
        try:
            return Decimal(repr(parse_duration(condition.value)))
        except BadText:
            return None
    return number
