"""Numbers, amounts of memory, durations and booleans. Any other text raises `BadText` with problem and hint."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from riseml.base.sizes import SIZE_HINT, BadSize, Size, parse_size
from riseml.spec.scalars.texts import BadText, quote_text

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_LONGEST = 40  # characters; a longer number is a mistake, and slow to compute with
_LARGEST_EXACT = 2**53  # above it, readers whose numbers are floats lose the last digit of a whole number
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_MOST_MEMORY = 64 * 1024**2  # MiB: 64 TiB
_BARE_MIB = 64  # a number without a unit is MiB from here up, and GiB below
_DURATION_PART = re.compile(r"(?P<number>[0-9]+(\.[0-9]*)?|\.[0-9]+) ?(?P<unit>[smhd])")
_DURATION = re.compile(r"(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?[smhd])+")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_DURATION = 10 * 365 * 86400  # seconds
_SEXAGESIMAL = re.compile(r"[0-9]+(:[0-9]+)+")
_DURATION_HINT = "write 90, 30s, 10m, 2h or 1d"
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_boolean(text: str) -> bool | None:
    """Return the value of a YAML 1.1 boolean (`true`, `yes`, `on` and their opposites); None for any other text."""
    return _BOOLEANS.get(text.lower()) if text in (text.lower(), text.title(), text.upper()) else None


def parse_number(text: str) -> int | Decimal | None:
    """Return an exact decimal number; None for any other text (`0x10`, `1_000`, `.inf`).

    Raises:
        BadText: the number is ambiguous (`012`), or longer than 40 characters.
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    if len(text) > _LONGEST:
        raise BadText(f"the number has {len(text)} characters", f"at most {_LONGEST} are allowed")
    if _LEADING_ZERO.fullmatch(text):
        plain = text.lstrip("+-0") or "0"
        raise BadText(f"{text} is octal for some YAML readers and decimal for others", f"write {plain}")
    return int(text) if _WHOLE.fullmatch(text) else Decimal(text)


def read_value(text: str) -> bool | int | float | str:
    """Return a text as the number, true or false that it stands for, where `write_value` makes the same text of it
    again; else the text: `0.1` becomes a number; `2.10`, `1e5`, `007`, `1_000` and 9007199254740993 stay texts.
    """
    if text in ("true", "false"):
        return text == "true"
    try:
        number = None if text.startswith("+") else parse_number(text)
    except BadText:
        return text
    if number is None:
        return text
    value = number if isinstance(number, int) else float(number)
    is_exact = abs(value) <= _LARGEST_EXACT and write_value(value) == text
    return value if is_exact else text


def write_value(value: bool | float | str) -> str:  # noqa: FBT001  # a value as YAML has it
    """Return the text of a value that `read_value` made: numbers as riseml writes them, `0.1` and `1e-7`.

    Example:
        >>> [write_value(read_value(text)) for text in ("2.10", "1e-7", "true", "64")]
        ['2.10', '1e-7', 'true', '64']
    """
    if isinstance(value, bool):
        return str(value).lower()
    return format_decimal(Decimal(repr(value))) if isinstance(value, float) else str(value)


def parse_memory(text: str) -> int:
    """Return an amount of memory in MiB, rounded up.

    A number without a unit is MiB from 64 up and GiB below: RiseML's documentation writes `mem: 16384` for 16 GiB and
    `mem: 4` for 4 GiB.

    Example: `parse_memory("1.5GiB")` is 1536.

    Raises:
        BadText: the text is not an amount of memory, or below 1 byte, or above 64 TiB.
    """
    size = _parse_size(text)
    bare = not size.prefix
    if bare:
        size = Size(size.amount, "M" if size.amount >= _BARE_MIB else "G")
    mib = math.ceil(size.count_bytes() / 2**20)
    if mib < 1:
        raise BadText(f"must be more than 0, not {quote_text(text)}", SIZE_HINT)
    if mib > _MOST_MEMORY:
        note = " (a number without a unit is MiB)" if bare else ""
        raise BadText(f"{quote_text(text)} is more than 64 TiB{note}", SIZE_HINT)
    return mib


def find_assumed_unit(text: str) -> str:
    """Return the unit of an amount of memory that is written without one; empty when it has one.

    Example:
        >>> find_assumed_unit("16"), find_assumed_unit("4096"), find_assumed_unit("4GiB")
        ('GiB', 'MiB', '')
    """
    size = _parse_size(text)
    return "" if size.prefix else "MiB" if size.amount >= _BARE_MIB else "GiB"


def _parse_size(text: str) -> Size:
    try:
        return parse_size(text)
    except BadSize as bad:
        raise BadText(f"{quote_text(text)} {bad.problem}", bad.hint) from bad


def parse_duration(text: str) -> float:
    """Return a duration in seconds. A number without a unit is seconds.

    Example: `parse_duration("1h30m")` is 5400.0.

    Raises:
        BadText: the text is not a duration, or more than ten years.
    """
    if len(text) > _LONGEST:
        raise BadText(f"{quote_text(text)} is not a duration", _DURATION_HINT)
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", text):
        seconds = Decimal(text)
    elif _DURATION.fullmatch(text):
        parts = _DURATION_PART.finditer(text)
        seconds = sum((Decimal(part["number"]) * _SECONDS[part["unit"]] for part in parts), Decimal(0))
    else:
        raise BadText(*_bad_duration(text))
    if seconds > _LONGEST_DURATION:
        raise BadText(f"{quote_text(text)} is more than ten years", _DURATION_HINT)
    return float(seconds)


def _bad_duration(text: str) -> tuple[str, str]:
    if text.startswith("-"):
        return f"{quote_text(text)} is negative", _DURATION_HINT
    if _SEXAGESIMAL.fullmatch(text) and text.count(":") == 1:
        hours, _, minutes = text.partition(":")
        return (
            f"{quote_text(text)} could be hours and minutes or minutes and seconds",
            f"write {hours}h{minutes}m or {hours}m{minutes}s",
        )
    return f"{quote_text(text)} is not a duration", _DURATION_HINT


def format_decimal(value: Decimal) -> str:
    """Return a number as Python prints it, without rounding: `100`, `0.5`, `1e-6`."""
    if value and value.adjusted() < -4:
        return f"{value.normalize():e}"
    text = format(value, "f")
    if "." not in text:
        return text
    short = text.rstrip("0")
    return f"{short}0" if short.endswith(".") else short
