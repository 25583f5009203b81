"""Moments as conditions name them: `2026-11-01`, `2026-11-01T10:00`, `now-2h`. Pure.

A moment counts as exactly as it is written: `2026-11-01` is a whole day, in UTC. So `started=2026-11-01` finds what
started on that day, `>=` what started then or later, and `>` what started after it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.spec.scalars.quantities import parse_duration
from riseml.spec.scalars.texts import BadText

_WRITTEN = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<minute>\d{2}:\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?(?P<zone>Z|[+-]\d{2}:\d{2})?)?",
    re.ASCII,
)
_RELATIVE = re.compile(r"now(?:-(?P<age>.+))?")
_EXAMPLES = "2026-11-01, 2026-11-01T10:00, or now-2h for two hours ago"


@dataclass(frozen=True, slots=True)
class Period:
    """The time that a written moment takes: from its first to behind its last second."""

    start: datetime
    end: datetime

    def meets(self, moment: datetime, sign: str) -> bool:
        """Return whether a moment is in the period (`=`), before it (`<`), or after it (`>`), and so on."""
        before = moment < self.start
        after = moment >= self.end
        return {
            "=": not before and not after,
            "!=": before or after,
            "<": before,
            "<=": not after,
            ">": after,
            ">=": not before,
        }[sign]


def read_period(text: str, now: datetime) -> Period:
    """Return the time that a text names; without a zone it is UTC.

    Args:
        text: as the user wrote it.
        now: what `now-2h` counts from.

    Raises:
        UsageError: it is no moment; the message says what is one.
    """
    if (relative := _RELATIVE.fullmatch(text)) is not None:
        start = now - timedelta(seconds=_read_age(text, relative["age"]))
        return Period(start, start)
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise UsageError(f"{text[:80]!r} is no moment", _suggest(text))
    clock = written["minute"] or "00:00"
    zone = "+00:00" if written["zone"] in (None, "Z") else written["zone"]
    length = timedelta(seconds=1) if written["second"] else timedelta(minutes=1) if written["minute"] else _DAY
    try:
        start = datetime.fromisoformat(f"{written['day']}T{clock}:{written['second'] or '00'}{zone}").astimezone(UTC)
        return Period(start, start + length)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text[:80]!r} is in no calendar", f"write {_EXAMPLES}") from error


_DAY = timedelta(days=1)


def _read_age(text: str, age: str | None) -> float:
    try:
        return 0.0 if age is None else parse_duration(age)
    except BadText as bad:
        raise UsageError(f"{text[:80]!r} is no moment: {bad.problem}", bad.hint) from bad


def _suggest(text: str) -> str:
    try:
        parse_duration(text)
    except BadText:
        return f"write {_EXAMPLES}"
    return f"write now-{text} for that long ago, or a date: {_EXAMPLES}"
