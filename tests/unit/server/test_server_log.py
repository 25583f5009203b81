"""The server's log file: text or JSON lines, bounded, for its user alone."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.base.names import HostName
from riseml.base.settings import LogFormat, read_settings
from riseml.server.log_line import LogLine, write_line
from riseml.server.server_log import JsonFormatter, ServerLogHandler, TextFormatter, is_same_file

LINE = LogLine("4 placed: master on gpu1 (first in the queue)", experiment="4", host=HostName("gpu1"), seconds=0.21)


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """A logger without other handlers."""
    made = logging.Logger("riseml.test", logging.INFO)
    yield made
    for handler in made.handlers:
        handler.close()


def add_handler(log: logging.Logger, path: Path, formatter: logging.Formatter, largest: int = 10_000) -> None:
    handler = ServerLogHandler(path, largest, streams=())
    handler.setFormatter(formatter)
    log.addHandler(handler)


def test_text_has_the_moment_the_level_and_the_message(tmp_path: Path, log: logging.Logger) -> None:
    add_handler(log, tmp_path / "server.log", TextFormatter())
    write_line(log, LINE)
    moment, rest = (tmp_path / "server.log").read_text().split(" ", 1)
    assert rest == "INFO 4 placed: master on gpu1 (first in the queue)\n"
    assert len(moment) == len("2026-11-22T03:40:01Z")
    assert moment.endswith("Z")


def test_json_has_the_facts_beside_the_message(tmp_path: Path, log: logging.Logger) -> None:
    add_handler(log, tmp_path / "server.log", JsonFormatter())
    write_line(log, LINE)
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("two\nlines")
    first, second = map(json.loads, (tmp_path / "server.log").read_text().splitlines())
    assert {name: first[name] for name in ("level", "message", "experiment", "host", "seconds")} == {
        "level": "INFO",
        "message": LINE.text,
        "experiment": "4",
        "host": "gpu1",
        "seconds": 0.21,
    }
    assert len(first["time"]) == len("2026-11-22T03:40:01.482Z")
    assert second["message"] == "two\nlines"
    assert second["traceback"].endswith("ValueError: broken")


def test_further_lines_of_a_text_message_are_indented(tmp_path: Path, log: logging.Logger) -> None:
    add_handler(log, tmp_path / "server.log", TextFormatter())
    log.warning("pool.yml cannot be used:\npool.yml:1:1 hosts: missing")
    assert (tmp_path / "server.log").read_text().splitlines()[1] == "  pool.yml:1:1 hosts: missing"


def test_the_log_is_bounded_and_its_user_s_alone(tmp_path: Path, log: logging.Logger) -> None:
    path, former = tmp_path / "server.log", tmp_path / "server.log.1"
    add_handler(log, path, TextFormatter(), largest=1000)
    for number in range(100):
        log.info("line %d", number)
    assert 0 < path.stat().st_size <= 1000
    assert 0 < former.stat().st_size <= 1000
    assert sorted(os.listdir(tmp_path)) == ["server.log", "server.log.1"]
    assert [one.stat().st_mode & 0o777 for one in (path, former)] == [0o600, 0o600]
    assert path.read_text().endswith("line 99\n")


def test_a_standard_stream_that_leads_to_the_file_follows_it(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    stream = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    elsewhere = os.open(tmp_path / "terminal", os.O_WRONLY | os.O_CREAT)
    handler = ServerLogHandler(path, streams=(stream, elsewhere))
    handler.doRollover()
    assert is_same_file(stream, path)
    assert is_same_file(elsewhere, tmp_path / "terminal")
    handler.close()
    for descriptor in (stream, elsewhere):
        os.close(descriptor)


def test_the_format_is_a_setting() -> None:
    assert read_settings({}).log_format is LogFormat.TEXT
    assert read_settings({"RISEML_LOG_FORMAT": "json"}).log_format is LogFormat.JSON
    with pytest.raises(UsageError, match="RISEML_LOG_FORMAT is 'xml'"):
        read_settings({"RISEML_LOG_FORMAT": "xml"})
