"""Searches lines with the patterns of users, in a process of its own: standard library only.

Python's `re` may take years for one line, and holds the interpreter's lock meanwhile. But the main thread handles
signals during a search: a timer of processor time ends a search that takes too long. Each line of stdin is an order,

    {"patterns": {"loss": "loss ([0-9.]+)"}, "lines": ["loss 0.5"], "seconds": 5.0}

and each line of stdout its answer: what was found, by the number of the line, and which patterns took too long. The
whole order has a limit of processor time, too: when it is reached, the patterns that used most of it took too long.

    {"found": [[0, "loss", "0.5"]], "slow": []}
"""

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

LONGEST_SEARCH = 0.1
"""Seconds of processor time for one pattern and one line."""

LONGEST_COMPILE = 1.0
"""Seconds of processor time until a pattern is compiled."""
_BROKEN = (re.error, RecursionError, MemoryError, OverflowError)  # a pattern that cannot be searched


class _TooSlowError(Exception):
    """A search has taken too long."""


def _end_search(*_: object) -> None:
    raise _TooSlowError


class _OrderSearch:
    """Searches the lines of one order.

    Args:
        patterns: by name.
        seconds: of processor time that the patterns which are not slow may take together.
    """

    def __init__(self, patterns: "dict[str, str]", seconds: float) -> None:
        self.slow: list[str] = []
        self._seconds = seconds
        self._used = dict.fromkeys(patterns, 0.0)  # seconds of processor time, of the patterns that are not slow
        self._total = 0.0  # seconds of those together
        self._since = time.process_time()
        self._compiled: dict[str, re.Pattern[str]] = {}
        for name, pattern in patterns.items():
            try:
                self._compiled[name] = _run_limited(LONGEST_COMPILE, re.compile, pattern)
            except (_TooSlowError, *_BROKEN):
                self._leave_out(name)
            self._note_use(name)

    def search_line(self, line: str) -> "list[tuple[str, str]]":
        """Return what each pattern finds in a line. A pattern that takes too long is left out from there on."""
        findings = []
        for name, pattern in list(self._compiled.items()):
            if name not in self._used:
                continue  # an earlier pattern has used up the time of the order
            try:
                match = _run_limited(LONGEST_SEARCH, pattern.search, line)
            except (_TooSlowError, *_BROKEN):
                self._leave_out(name)
            else:
                if match is not None and match.group(1) is not None:
                    findings.append((name, match.group(1)[:100]))
            self._note_use(name)
        return findings

    def _note_use(self, name: str) -> None:
        """Count the time since the last call for a pattern; when it is too much, leave out those that used most."""
        now = time.process_time()
        used, self._since = now - self._since, now
        if name in self._used:
            self._used[name] += used
            self._total += used
        if self._total > self._seconds:
            fair = sum(self._used.values()) / len(self._used)
            for slow_name in [slow_name for slow_name, seconds in self._used.items() if seconds >= fair]:
                self._leave_out(slow_name)

    def _leave_out(self, name: str) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.slow.append(name)
        del self._used[name]
        self._compiled.pop(name, None)
        self._total = sum(self._used.values())


def _run_limited(seconds: float, call: "Callable[[str], Found]", text: str) -> "Found":
    """Return what a call returns.

    Raises:
        _TooSlowError: it takes too long.
    """
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        return call(text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def search_lines(patterns: "dict[str, str]", lines: "list[str]", seconds: float) -> "dict[str, list[object]]":
    """Return what the patterns find; a pattern that took too long once is left out from there on."""
    search = _OrderSearch(patterns, seconds)
    findings: list[object] = [
        [number, name, text] for number, line in enumerate(lines) for name, text in search.search_line(line)
    ]
    return {"found": findings, "slow": list(search.slow)}


def main() -> None:
    """Answer each order until stdin ends: the server has ended."""
    signal.signal(signal.SIGVTALRM, _end_search)
    for row in sys.stdin:
        order = json.loads(row)
        sys.stdout.write(json.dumps(search_lines(order["patterns"], order["lines"], order["seconds"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
