"""Metrics in lines of output, found by the patterns of `train.metrics`.

A separate process searches (`pattern_program`), so that a slow pattern blocks nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from riseml.base.errors import StoreError
from riseml.base.names import BUILD
from riseml.base.records import dataclass
from riseml.base.terminal_text import plain_line
from riseml.store.logs.blocks import LogBlock
from riseml.store.metrics.metric_tally import MetricReport, read_reports

LONGEST_LINE = 1000
"""Characters of a line that are searched; of a progress bar, of its last state."""

_PROGRAM = Path(__file__).with_name("pattern_program.py")
_PROCESSOR_TIME = 5.0  # seconds for the patterns of one answer together
_DEADLINE = 60.0  # seconds for an answer; the program also limits its own processor time
_OUTPUT = frozenset({1, 2})  # stdout and stderr
_NUMBER = re.compile(r" *[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,4})? *", re.ASCII)
_NOT_FINITE = re.compile(r" *[+-]?(?:nan|inf|infinity) *", re.IGNORECASE | re.ASCII)
_LARGEST_STEP = 10**15


@dataclass(frozen=True, slots=True)
class LineFindings:
    """What patterns found in some lines."""

    values: Mapping[int, Mapping[str, str]]  # by the number of the line, then by name
    slow: frozenset[str]  # names of the patterns that took too long


class PatternSearch:
    """The process that searches; it starts at the first search. Safe from many threads.

    Args:
        processor_time: seconds for the patterns of one answer together; those that used most of it are slow.
        deadline: seconds for an answer.
    """

    def __init__(self, processor_time: float = _PROCESSOR_TIME, deadline: float = _DEADLINE) -> None:
        self._processor_time = processor_time
        self._deadline = deadline
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def search_lines(self, patterns: Mapping[str, str], lines: list[str]) -> LineFindings:
        """Return what patterns find in lines. When no answer comes in time, all patterns count as slow.

        Raises:
            StoreError: the process has ended; the next call starts another one.
        """
        late = threading.Event()
        request = {"patterns": dict(patterns), "lines": lines, "seconds": self._processor_time}
        order = json.dumps(request).encode() + b"\n"
        with self._lock:
            try:
                answer = json.loads(self._ask_program(order, late))
            except (OSError, ValueError) as error:
                self._end_process()
                if late.is_set():  # do not repeat the order: it would take as long again
                    return LineFindings({}, frozenset(patterns))
                raise StoreError("the patterns of train.metrics were not searched; the server tries again") from error
        values: dict[int, dict[str, str]] = {}
        for number, name, text in answer["found"]:
            values.setdefault(number, {})[name] = text
        return LineFindings(values, frozenset(answer["slow"]))

    def _ask_program(self, order: bytes, late: threading.Event) -> bytes:
        """Return the answer of the process; empty when the process was ended because it was late."""
        if self._process is None or self._process.poll() is not None:
            self._end_process()
            command = [sys.executable, "-IS", str(_PROGRAM)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self._process
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        watchdog = threading.Timer(self._deadline, _end_late, (process, late))
        watchdog.daemon = True
        watchdog.start()
        try:
            process.stdin.write(order)
            process.stdin.flush()
            return process.stdout.readline()
        finally:
            watchdog.cancel()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end_process()

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # unwritten input has no reader any more
                        pipe.close()


def _end_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def find_reports(
    blocks: Iterable[LogBlock], patterns: Mapping[str, str], search: PatternSearch
) -> tuple[list[MetricReport], frozenset[str]]:
    """Return the reports of blocks, those that patterns find in lines included, in the order of the log.

    Returns:
        The reports, and the names of patterns that took too long.

    Raises:
        StoreError: as `PatternSearch.search_lines`.
    """
    parts = [(block, block.lines() if _is_searched(block) else []) for block in blocks]
    lines = [line for _, some in parts for line in some]
    texts = [_find_shown(line.text) for line in lines]
    findings = search.search_lines(patterns, texts) if texts else LineFindings({}, frozenset())
    reports: list[MetricReport] = []
    number = 0
    for block, some in parts:
        for line in some:
            values = findings.values.get(number)
            number += 1
            if values:
                reports.append(_make_report(block, line.at, values))
        reports.extend(read_reports([block]))
    return [report for report in reports if report.values], findings.slow


def _find_shown(text: bytes) -> str:
    """Return the beginning of what the log shows of a line: of a progress bar its last state that is not blank."""
    if b"\r" not in text:
        return _read_beginning(text)
    states = (_read_beginning(state) for state in reversed(text.split(b"\r")))
    return next((state for state in states if plain_line(state).strip()), "")


def _read_beginning(text: bytes) -> str:
    return text[: 4 * LONGEST_LINE].decode("utf-8", "replace")[:LONGEST_LINE]


def _is_searched(block: LogBlock) -> bool:
    return not block.is_report and block.stream in _OUTPUT and block.job != BUILD


def _make_report(block: LogBlock, at: str, texts: Mapping[str, str]) -> MetricReport:
    """Return a report with the numbers that the groups of patterns found in one line."""
    numbers = {
        name: float(text) for name, text in texts.items() if _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text)
    }
    step = numbers.pop("step", None)
    is_step = step is not None and abs(step) < _LARGEST_STEP and step.is_integer()
    return MetricReport(
        block.job, block.attempt, at, int(step) if step is not None and is_step else None, tuple(numbers.items())
    )
