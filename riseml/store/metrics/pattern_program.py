"""Searches lines with the patterns of users, in a process of its own: standard library only.

Python's `re` may take years for one line, and holds the interpreter's lock meanwhile. Its main thread hears signals,
though: here a timer of processor time ends a search that takes too long. Each line of stdin is an order,

    {"patterns": {"loss": "loss ([0-9.]+)"}, "lines": ["loss 0.5"]}

and each line of stdout its answer: what was found, by the number of the line, and which patterns took too long.

    {"found": [[0, "loss", "0.5"]], "slow": []}
"""

import json
import re
import signal
import sys

LONGEST_SEARCH = 0.1
"""Seconds of processor time for one pattern and one line."""


class _TooSlowError(Exception):
    """A search has taken too long."""


def _end_search(*_: object) -> None:
    raise _TooSlowError


def _search_line(pattern: "re.Pattern[str]", line: str) -> "str | None":
    """Return what the group of a pattern finds in a line.

    Raises:
        _TooSlowError: it takes too long.
    """
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_SEARCH)
        found = pattern.search(line)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return found.group(1) if found else None


def search_lines(patterns: "dict[str, str]", lines: "list[str]") -> "dict[str, list[object]]":
    """Return what the patterns find; a pattern that took too long once is left out from there on."""
    compiled = {name: re.compile(pattern) for name, pattern in patterns.items()}
    found: list[object] = []
    slow: list[object] = []
    for number, line in enumerate(lines):
        for name in list(compiled):
            try:
                text = _search_line(compiled[name], line)
            except _TooSlowError:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                slow.append(name)
                del compiled[name]
            else:
                if text is not None:
                    found.append([number, name, text[:100]])
    return {"found": found, "slow": slow}


def main() -> None:
    """Answer each order until stdin ends: the server has ended."""
    signal.signal(signal.SIGVTALRM, _end_search)
    for row in sys.stdin:
        order = json.loads(row)
        sys.stdout.write(json.dumps(search_lines(order["patterns"], order["lines"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
