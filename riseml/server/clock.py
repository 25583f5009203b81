"""The only place where the server reads the time of day."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from riseml.executors.logs.timestamps import to_text


def now() -> datetime:
    """Return the time of day, in UTC."""
    return datetime.now(UTC)  # noqa: TID251  # the edge at which time becomes a value


def stamp() -> str:
    """Return the time of day with nanoseconds, as an engine writes it before a log frame."""
    return to_text(time.time_ns())
