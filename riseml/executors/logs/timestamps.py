"""Times as the Docker Engine writes them: `2026-08-31T07:23:46.5Z`, with up to nine digits of a second.

A datetime has six digits. So a time that is compared, or from which a log is read on, stays a number of nanoseconds or
a text.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_BILLION = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(nanoseconds: int) -> str:
    """Return nanoseconds since 1970 in the engine's form, always with nine digits.

    Example:
        >>> to_text(1_788_161_026_500_000_000)
        '2026-08-31T07:23:46.500000000Z'
    """
    seconds, fraction = divmod(nanoseconds, _BILLION)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def to_nanoseconds(text: str) -> int:
    """Return a time in the engine's form as nanoseconds since 1970.

    Raises:
        ValueError: the text is not such a time.
    """
    whole, _, fraction = text.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * _BILLION + int(fraction.ljust(9, "0")[:9])


def is_before(stamp: str, other: str) -> bool:
    """Return True when a time in the engine's form is before another one.

    Times with equally many digits compare as texts: a reader that continues a log compares 100,000 in a second.

    Raises:
        ValueError: one of two texts of different lengths is not such a time.
    """
    return stamp < other if len(stamp) == len(other) else to_nanoseconds(stamp) < to_nanoseconds(other)


def to_datetime(nanoseconds: int) -> datetime:
    """Return nanoseconds since 1970 as a datetime in UTC, cut to microseconds."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
