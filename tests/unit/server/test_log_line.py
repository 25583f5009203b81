"""A line of the server's log, with its facts."""

from __future__ import annotations

import logging

import pytest

from riseml.base.names import HostName, JobName
from riseml.server.log_line import FACTS, LogLine, write_line


def test_only_what_is_known_is_a_fact() -> None:
    assert LogLine("x").facts() == {}
    line = LogLine("x", "4", JobName("train"), 1, HostName("gpu1"), seconds=0.12345)
    assert line.facts() == {"experiment": "4", "job": "train", "attempt": 1, "host": "gpu1", "seconds": 0.123}


def test_a_line_is_logged_as_it_is_with_its_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        write_line(logging.getLogger("test"), LogLine("100 % done", "4"), logging.WARNING)
    (record,) = caplog.records
    assert (record.getMessage(), record.levelno) == ("100 % done", logging.WARNING)
    assert getattr(record, FACTS) == {"experiment": "4"}
