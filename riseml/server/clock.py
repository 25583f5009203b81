"""The one place where the server reads the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> datetime:
    """The time of day, in UTC."""
    return datetime.now(UTC)  # noqa: TID251  # the edge at which time becomes a value


def stamp() -> str:
    """The time of day with nanoseconds, as the engine writes it before a log frame."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
