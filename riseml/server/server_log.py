"""The server's own log: the file server.log in RISEML_HOME, bounded, as text or as JSON lines.

    2026-11-22T03:40:01Z INFO 4 placed: master on gpu1 (first in the queue)
    {"time": "2026-11-22T03:40:01.482Z", "level": "INFO", "message": "4 placed: ...", "experiment": "4", "host": "gpu1"}

A file that reaches its limit becomes server.log.1, and replaces the previous one. When standard error is a
terminal or another file, the server writes every line there, too.
"""

from __future__ import annotations

import io
import json
import logging
import logging.handlers
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from riseml.base.settings import LogFormat, Settings
from riseml.server.log_line import FACTS

LARGEST_FILE = 8 * 2**20
"""Bytes of server.log; server.log.1 has about as many, so that both together stay below twice this size."""

_STANDARD = (1, 2)  # file descriptors of standard output and standard error
_CHATTY = ("alembic", "uvicorn", "httpx", "urllib3", "docker")  # libraries whose INFO lines say nothing about riseml

_NEIGHBOURS = "riseml.server.bounded_connection"  # every user of the machine could fill the log with its warnings


def configure_logging(settings: Settings, *, shared: bool = False) -> None:
    """Write everything that the server logs to its file, and to standard error when that is another place.

    Args:
        settings: name the file.
        shared: another server of the home writes to the file now, so that this one writes to standard error alone.

    Raises:
        OSError: the file cannot be opened.
    """
    handlers: list[logging.Handler] = [] if shared else [ServerLogHandler(settings.log)]
    if shared or not is_same_file(sys.stderr.fileno(), settings.log):
        handlers.append(logging.StreamHandler(sys.stderr))
    formatter = JsonFormatter() if settings.log_format is LogFormat.JSON else TextFormatter()
    for handler in handlers:
        handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger(_NEIGHBOURS).setLevel(logging.ERROR)


class ServerLogHandler(logging.handlers.RotatingFileHandler):
    """Appends to a file that its user alone can read, and renames it when it is full.

    A standard stream that leads to the file is led to the new one, so that a crash of the interpreter is written there.

    Args:
        path: the file.
        largest: its limit in bytes.
        streams: file descriptors that may lead to the file.
    """

    def __init__(self, path: Path, largest: int = LARGEST_FILE, streams: tuple[int, ...] = _STANDARD) -> None:
        self._streams = streams
        super().__init__(path, maxBytes=largest, backupCount=1, encoding="utf-8", errors="backslashreplace")

    def _open(self) -> io.TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self.baseFilename, flags, 0o600)
        return open(descriptor, "a", encoding=self.encoding, errors=self.errors)

    def doRollover(self) -> None:  # the name that logging calls
        """Rename the full file and open an empty one."""
        path = Path(self.baseFilename)
        streams = [stream for stream in self._streams if is_same_file(stream, path)]
        super().doRollover()
        if self.stream is not None:
            for stream in streams:
                os.dup2(self.stream.fileno(), stream)


class TextFormatter(logging.Formatter):
    """`time LEVEL message`; the further lines of a message are indented."""

    def format(self, record: logging.LogRecord) -> str:
        message = "\n  ".join(_describe_record(record).splitlines())
        return f"{_format_record_time(record):%Y-%m-%dT%H:%M:%SZ} {record.levelname} {message}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time`, `level`, `message`, `logger`, `thread`, and the facts of a decision or action."""

    def format(self, record: logging.LogRecord) -> str:
        moment = _format_record_time(record)
        entry: dict[str, Any] = {
            "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z",
            "level": record.levelname,
            "message": record.getMessage(),
            **getattr(record, FACTS, {}),
            "logger": record.name,
            "thread": record.threadName,
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def is_same_file(descriptor: int, path: Path) -> bool:
    """Return True when a file descriptor leads to this file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:  # the descriptor is closed, or there is no such file
        return False


def _format_record_time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _describe_record(record: logging.LogRecord) -> str:
    message = record.getMessage()
    if record.exc_info:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return message
