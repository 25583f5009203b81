"""Reports of metrics among the lines of a job's stdout. Pure.

    riseml.report {"step": 120, "loss": 0.31}

is a report when it is the whole line; the mark of a process that `rank_launcher` starts (`[3] `) may stand before it.
The module `riseml` of a job writes the record separator (0x1e) before it: then whatever stands before that in the same
line is a line of its own, such as a progress bar that was not finished. Everything that does not fit exactly stays an
ordinary line, so that its author sees it.
"""

from __future__ import annotations

import re

from riseml.base.metric_names import LONGEST, read_quoted_name

MARKER = b"riseml.report {"
_SEPARATOR = b"\x1e"
_CHARACTER = (  # a character of UTF-8, or an escape of JSON
    rb'(?:[ !#-\[\]-~]|\\(?:["\\/]|u[0-9A-Fa-f]{4})|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}'
    rb"|[\xf0-\xf4][\x80-\xbf]{3})"
)
_USUAL = rb"[ !#-\[\]-~]"
# Each name has one of the two forms: else a line without a report would be tried in two ways for each of its names.
_NAME = rb'"(?:%b{1,%d}+|(?=%b*+[^"])%b{1,%d})"' % (_USUAL, LONGEST, _USUAL, _CHARACTER, 2 * LONGEST)
_QUOTED = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*)"')
# Groups are never possessive: in Python 3.11 before 3.11.5, one that fails inside keeps what it took (gh-106052).
_NUMBER = rb"-?+(?:[0-9]{1,40}+(?:\.[0-9]{1,40}+)?(?:[eE][+-]?+[0-9]{1,4}+)?|(?i:nan|inf(?:inity)?))"
_PAIR = rb'(?:"step" *+: *+-?+[0-9]{1,15}+|(?!"step")' + _NAME + rb" *+: *+" + _NUMBER + rb")"
_BODY = rb"riseml\.report \{ *+" + _PAIR + rb"(?: *+, *+" + _PAIR + rb"){0,99} *+\}\r?+"
_REPORT = re.compile(_BODY)
_MARK = re.compile(rb"\[[0-9]{1,6}\] \x1e?")
_ROWS_OF_REPORTS = re.compile(rb"(?:[^ \n]++ \x1e?" + _BODY + rb"\n)+")


class KnownReports:
    """The newest part of a log that is known to hold only reports.

    The server reads a growing log twice: for clients that follow it, and to count its reports. With this record the
    second reader skips the check of each line. Threads may share it: at worst a thread checks lines again.
    """

    def __init__(self) -> None:
        self._range = (0, 0)  # bytes from the beginning of the file

    def covers(self, start: int, end: int) -> bool:
        """Return True when the bytes between two offsets are known to be reports."""
        first, last = self._range
        return first <= start and end <= last

    def note_range(self, start: int, end: int) -> None:
        """Note that the bytes between two offsets are reports."""
        if self.covers(start, end):
            return
        first, last = self._range
        self._range = (first, end) if start == last else (start, end)


def split_report(text: bytes) -> tuple[bytes | None, bytes | None]:
    """Return the visible text and the report of a line; None for a part that the line lacks.

    Example:
        >>> split_report(b'epoch 2\\x1eriseml.report {"loss": 0.31}')
        (b'epoch 2', b'riseml.report {"loss": 0.31}')
    """
    start = text.rfind(MARKER)
    if start < 0 or _REPORT.fullmatch(text, start) is None or not _has_names(text[start:]):
        return text, None
    before = text[:start]
    report = text[start:]
    if before in (b"", _SEPARATOR) or _MARK.fullmatch(before):
        return None, report
    return (before[:-1], report) if before.endswith(_SEPARATOR) else (text, None)


def holds_only_reports(rows: bytes) -> bool:
    """Return True when each of these `<timestamp> <text>\\n` is a report: nearly always, where one of many is."""
    return _ROWS_OF_REPORTS.fullmatch(rows) is not None and _has_names(rows)


def _has_names(text: bytes) -> bool:
    """Return True when each name in the text of reports is one that a metric may have."""
    if text.isascii() and b"\\" not in text:
        return True  # the pattern leaves no other
    return all(read_quoted_name(quoted) is not None for quoted in set(_QUOTED.findall(text)))
