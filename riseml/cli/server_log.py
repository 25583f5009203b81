"""The server's own log as `riseml server logs` reads it: from its files, whether a server runs or not."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from riseml.base.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from riseml import wire

_INTERVAL = 0.2  # seconds between two reads of a file that does not grow
_TEXT_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([A-Z]+) (.*)")


class ServerLogReader:
    """Reads the last lines of the log, then those that the server adds.

        with ServerLogReader(settings.log, settings.former_log) as reader:
            print(*reader.read_last_lines(100), sep="\\n")

    Args:
        path: the file that the server writes.
        former: the file that it wrote before, which ends where `path` begins.
    """

    def __init__(self, path: Path, former: Path) -> None:
        self._path = path
        self._former = former
        self._file: BinaryIO | None = None
        self._rest = b""  # the beginning of an incomplete line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def read_last_lines(self, count: int | None) -> list[str]:
        """Return the last whole lines, at most `count`; None: all lines that are kept. Call it once.

        Raises:
            NotFound: there is no log.
            Unreachable: it cannot be read.
        """
        # read the former file first, so that a file that the server renames at this moment is not missed
        self._file = self._open_log(self._path)
        former = self._open_log(self._former)
        if self._file is None and former is None:
            raise NotFound(
                f"there is no log of a riseml server in {self._path.parent}",
                "the server writes it from its first start on; RISEML_HOME names another home",
            )
        lines: deque[str] = deque(maxlen=count)
        if former is not None:
            with former:
                is_same = self._file is not None and os.path.sameopenfile(former.fileno(), self._file.fileno())
                lines.extend(() if is_same else _split(former.read())[0])
        lines.extend(self._read_lines())
        return list(lines)

    def follow_lines(self, wait: Callable[[float], object]) -> Iterator[list[str]]:
        """Yield the lines that the server adds, without end. `wait` pauses for some seconds when there are none.

        The server renames a full file and begins another one; the reader goes on there.
        """
        while True:
            lines = self._read_lines()
            if lines:
                yield lines
            elif self._is_renamed():
                if last := self._read_lines():  # lines that the server wrote before it renamed the file
                    yield last
                self._open_next()
            else:
                wait(_INTERVAL)

    def _read_lines(self) -> list[str]:
        if self._file is None:
            return []
        lines, self._rest = _split(self._rest + self._file.read())
        return lines

    def _is_renamed(self) -> bool:
        """Return True when the path leads to another file than the open one."""
        try:
            return self._file is None or not os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        except FileNotFoundError:  # the file was renamed a moment ago, and the next one does not exist yet
            return False

    def _open_next(self) -> None:
        following = self._open_log(self._path)
        if following is not None and self._file is not None:
            self._file.close()
        self._file = following or self._file

    def _open_log(self, path: Path) -> BinaryIO | None:
        """Open a file; None when there is none."""
        try:
            return path.open("rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreachable(f"{path} cannot be read: {error.strerror}", "only its owner can read it") from None


def _split(data: bytes) -> tuple[list[str], bytes]:
    """Return the whole lines, and what comes after the last of them."""
    *lines, open_line = data.split(b"\n")
    return [line.decode("utf-8", "replace") for line in lines], open_line


def parse_log_line(line: str) -> wire.ServerLogLine:
    """Return the parts of a line, whether the server wrote it as text or as JSON."""
    record = _read_object(line)
    if record is None:
        parts = _TEXT_LINE.fullmatch(line)
        record = {} if parts is None else {"time": parts[1], "level": parts[2], "message": parts[3]}
    return {
        "time": record.get("time"),
        "level": record.get("level"),
        "message": record.get("message", line),
        "experiment": record.get("experiment"),
        "job": record.get("job"),
        "attempt": record.get("attempt"),
        "host": record.get("host"),
        "state": record.get("state"),
        "reason": record.get("reason"),
        "seconds": record.get("seconds"),
    }


def _read_object(line: str) -> dict[str, Any] | None:
    """Return the JSON object that a line is; None for another line."""
    if not line.startswith("{"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
