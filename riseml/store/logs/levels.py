"""The level of a line of output, such as error or warning, from the usual formats of log lines. Pure.

Known are the names of Python's `logging` in capitals, the letters of glog, absl and TensorFlow, `level=error` and
`"level": "error"`, and what Python itself prints: tracebacks, exceptions, warnings. Words such as `error` in a sentence
or in the name of a metric say nothing. Most lines have no level.
"""

from __future__ import annotations

import re
from enum import Enum

_LONGEST = 2000  # bytes of a line that are looked at
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
_FIELD = rb'(?:^|[\s{,"])level(?:name)?"? ?[=:] ?"?(?i:%b)\b'
_LETTER = rb"^(?:%b\d{4} \d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9}: %b )"
_WORD = rb"(?<![\w.-])(?:%b)(?![\w-])"
_ERROR = (
    _WORD % b"CRITICAL|FATAL|ERROR",
    _LETTER % (b"[EF]", b"[EF]"),
    _FIELD % b"critical|fatal|error",
    rb"^Traceback \(most recent call last\)",
    rb"^[A-Za-z_][\w.]{0,99}(?:Error|Exception)(?::|$)",
)
_WARNING = (
    _WORD % b"WARNING|WARN",
    _LETTER % (b"W", b"W"),
    _FIELD % b"warning|warn",
    rb"\b[A-Z]\w{0,99}Warning: ",
)
_INFO = (_WORD % b"INFO|NOTICE", _LETTER % (b"I", b"I"), _FIELD % b"info|notice")


class LogLevel(Enum):
    """The least serious lines that a reader gets; more serious lines are included."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


_PATTERNS = {
    LogLevel.ERROR: re.compile(b"|".join(_ERROR)),
    LogLevel.WARNING: re.compile(b"|".join((*_ERROR, *_WARNING))),
    LogLevel.INFO: re.compile(b"|".join((*_ERROR, *_WARNING, *_INFO))),
}


def has_level(text: bytes, level: LogLevel) -> bool:
    """Return True for a line of this level, or of a more serious one."""
    text = text[:_LONGEST]
    return _PATTERNS[level].search(_COLOUR.sub(b"", text) if b"\x1b" in text else text) is not None
