"""The time of day, as moments and as an engine writes it."""

from __future__ import annotations

from datetime import UTC, datetime

from riseml.server.clock import now, stamp


def test_a_stamp_lies_between_the_moments_around_it() -> None:
    before = now()
    text = stamp()
    after = now()
    assert before.tzinfo is UTC
    assert len(text) == len("2026-08-31T07:23:46.000000001Z")
    moment = datetime.fromisoformat(f"{text[:26]}+00:00")
    assert before <= moment <= after
