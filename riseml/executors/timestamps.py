"""Times as an engine writes them: `2026-08-31T07:23:46.5Z`, up to nine digits of a second, trailing zeros left out.

A datetime has six digits, so that what is compared or read on from stays a number of nanoseconds or a text.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_BILLION = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(nanoseconds: int) -> str:
    """Nanoseconds since 1970 as an engine writes them, always with nine digits."""
    seconds, rest = divmod(nanoseconds, _BILLION)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def to_nanoseconds(text: str) -> int:
    """The other way round.

    Raises:
        ValueError: this is no such time.
    """
    whole, _, fraction = text.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * _BILLION + int(fraction.ljust(9, "0")[:9])


def to_datetime(nanoseconds: int) -> datetime:
    """As a moment in UTC, its last three digits cut off."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
