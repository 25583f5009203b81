"""`riseml server logs`: the last lines of the server's own log, and what is added to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import NotFound
from riseml.cli.server_log import ServerLogReader
from tests.unit.cli.conftest import Riseml


def open_log(folder: Path) -> ServerLogReader:
    return ServerLogReader(folder / "server.log", folder / "server.log.1")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[ServerLogReader]:
    with open_log(tmp_path) as made:
        yield made


def write(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


class Steps:
    """Stands for a wait: does one thing each time, and ends the command with the last."""

    def __init__(self, *steps: tuple[Path, str]) -> None:
        self._steps = list(steps)

    def __call__(self, seconds: float) -> None:
        if not self._steps:
            raise KeyboardInterrupt
        path, text = self._steps.pop(0)
        if path.name.endswith(".1"):
            os.replace(path.with_suffix(""), path)
        else:
            write(path, text)


def follow(reader: ServerLogReader, *steps: tuple[Path, str]) -> list[str]:
    found: list[str] = []
    try:
        for lines in reader.follow_lines(Steps(*steps)):
            found += lines
    except KeyboardInterrupt:
        return found
    return found


@pytest.mark.parametrize(
    ("count", "shown"),
    [(3, ["two", "three", "four"]), (None, ["one", "two", "three", "four"]), (0, [])],
)
def test_the_last_lines_come_from_both_files(
    tmp_path: Path, reader: ServerLogReader, count: int | None, shown: list[str]
) -> None:
    write(tmp_path / "server.log.1", "one\ntwo\n")
    write(tmp_path / "server.log", "three\nfour\n")
    assert reader.read_last_lines(count) == shown


def test_a_home_without_a_log_is_named(tmp_path: Path, reader: ServerLogReader) -> None:
    with pytest.raises(NotFound, match=str(tmp_path)):
        reader.read_last_lines(None)


def test_lines_that_are_added_follow_once_they_are_whole(tmp_path: Path, reader: ServerLogReader) -> None:
    log = tmp_path / "server.log"
    write(log, "one\ntw")
    assert reader.read_last_lines(None) == ["one"]
    assert follow(reader, (log, "o\nthr"), (log, "ee\n")) == ["two", "three"]


def test_following_goes_on_in_the_file_that_replaces_a_full_one(tmp_path: Path, reader: ServerLogReader) -> None:
    log = tmp_path / "server.log"
    write(log, "one\n")
    reader.read_last_lines(None)
    assert follow(reader, (log, "two\n"), (tmp_path / "server.log.1", ""), (log, "three\n")) == ["two", "three"]


def test_the_command_prints_the_log_without_a_server(riseml: Riseml, tmp_path: Path) -> None:
    environ = {"RISEML_HOME": str(tmp_path)}
    found = riseml("server", "logs", environ=environ)
    assert (found.code, found.out) == (3, "")
    assert f"there is no log of a riseml server in {tmp_path}" in found.err
    write(tmp_path / "server.log", "one\ntwo \x1b[2J\n")
    assert riseml("server", "logs", "--tail", "1", environ=environ).out == "two \n"
    assert riseml("server", "logs", environ=environ).out == "one\ntwo \n"


def test_the_log_of_another_machine_is_refused(riseml: Riseml, tmp_path: Path) -> None:
    found = riseml("server", "logs", environ={"RISEML_HOME": str(tmp_path), "RISEML_SERVER": "https://gpu1:7000"})
    assert found.code == 2
    assert "is not your own server" in found.err


def test_json_prints_lines_of_both_formats(riseml: Riseml, tmp_path: Path) -> None:
    write(tmp_path / "server.log", "2026-11-22T03:40:01Z INFO 4 RUNNING\n  more of it\n")
    facts = {"experiment": "4", "job": "master", "attempt": 1, "host": "gpu1", "seconds": 0.21}
    line = {"time": "2026-11-22T03:40:02.001Z", "level": "INFO", "message": "4.master a1 started", **facts}
    write(tmp_path / "server.log", json.dumps(line | {"logger": "riseml", "thread": "loop"}) + "\n{broken\n")
    printed = riseml("server", "logs", "--json", environ={"RISEML_HOME": str(tmp_path)}).out
    text, more, whole, broken = map(json.loads, printed.splitlines())
    assert (text["time"], text["level"], text["message"]) == ("2026-11-22T03:40:01Z", "INFO", "4 RUNNING")
    assert (more["time"], more["message"]) == (None, "  more of it")
    assert whole == line | {"state": None, "reason": None}
    assert broken["message"] == "{broken"


def test_what_comes_right_before_the_server_renames_the_file_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, steps, is_renamed = tmp_path / "server.log", [1], ServerLogReader._is_renamed

    def write_and_ask(reader: ServerLogReader) -> bool:
        if steps:  # once, between the reader's last look and its question
            steps.clear()
            write(log, "two\n")
            os.replace(log, tmp_path / "server.log.1")
            write(log, "three\n")
        return is_renamed(reader)

    write(log, "one\n")
    monkeypatch.setattr(ServerLogReader, "_is_renamed", write_and_ask)
    with open_log(tmp_path) as reader:
        assert reader.read_last_lines(None) == ["one"]
        assert follow(reader) == ["two", "three"]
