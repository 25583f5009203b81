"""The client of one engine: which version of the API it speaks."""

from __future__ import annotations

import pytest

from riseml.executors.transports.engine_client import choose_api_version


@pytest.mark.parametrize(
    ("engine", "offered", "spoken"),
    [("20.10", "1.41", "1.41"), ("26.1", "1.45", "1.45"), ("29", "1.52", "1.45"), ("a far older one", "1.9", "1.9")],
)
def test_no_engine_is_spoken_to_in_a_version_that_was_never_tried(engine: str, offered: str, spoken: str) -> None:
    assert choose_api_version(offered) == spoken, engine
