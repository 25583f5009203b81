"""Read what `py-spy dump --json` prints. A job may have written every name in it: each is made harmless and short."""

from __future__ import annotations

import json
from collections.abc import Iterable

from riseml.base.control_characters import escape_controls
from riseml.diagnosis.stacks import StackFrame, ThreadStack, Variable

MOST_THREADS = 256  # of one process
MOST_FRAMES = 200  # of one thread: the innermost
MOST_VARIABLES = 50  # of one frame
_LONGEST_NAME = 200  # characters of a function, a thread or a variable
_LONGEST_PATH = 500  # characters
_LONGEST_VALUE = 200  # characters
_SOURCE = (".py", ".pyx", ".pyi", ".ipynb")


class UnreadableDump(Exception):
    """The text is not a dump of py-spy."""


def parse_dump(text: bytes, folder: str = "") -> tuple[ThreadStack, ...]:
    """Return the threads of one process, the main thread first.

    Args:
        text: what py-spy printed.
        folder: the working folder of the job: a file below it is named from there, so that the stacks of jobs with
            different folders are equal. Empty: files are named as they are.

    Raises:
        UnreadableDump: the text is not a dump of py-spy.
    """
    try:
        rows = json.loads(text.decode("utf-8", "replace"))
        rows = sorted(rows, key=lambda row: not _is_main(row))  # py-spy prints the newest thread first
        threads = tuple(_read_thread(row, folder) for row in rows[:MOST_THREADS])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnreadableDump(f"py-spy printed something else than stacks: {type(error).__name__}") from error
    return threads


def shorten(text: str, longest: int) -> str:
    """Return a text in one line, without control characters, and with at most so many characters."""
    line = escape_controls(text[:longest]).replace("\n", "\\n").replace("\t", " ")
    return line[: longest - 3] + "..." if len(text) > longest or len(line) > longest else line


def _is_main(row: dict[str, object]) -> bool:
    """Return True for the main thread, whose id is that of the process. A job may have changed its name."""
    return row["os_thread_id"] == row["pid"]


def _read_thread(row: dict[str, object], folder: str) -> ThreadStack:
    frames = row["frames"]
    if not isinstance(frames, list):
        raise TypeError("frames")
    return ThreadStack(
        name=shorten(_read_text(row.get("thread_name")), _LONGEST_NAME),
        thread=_read_number(row.get("os_thread_id")),
        frames=tuple(_read_frame(frame, folder) for frame in frames[:MOST_FRAMES]),
        is_idle=not row["active"],
        holds_gil=bool(row["owns_gil"]),
    )


def _read_frame(row: dict[str, object], folder: str) -> StackFrame:
    file = _read_text(row["filename"])
    line = _read_number(row.get("line"))
    variables = row.get("locals") or ()
    return StackFrame(
        function=shorten(_read_text(row["name"]), _LONGEST_NAME),
        file=shorten(file.removeprefix(f"{folder}/") if folder else file, _LONGEST_PATH),
        line=line,
        is_native=(bool(row.get("module")) or file in ("", "?")) and not file.endswith(_SOURCE),
        variables=tuple(_read_variables(variables)) if isinstance(variables, list) else (),
    )


def _read_variables(rows: list[dict[str, object]]) -> Iterable[Variable]:
    for row in rows[:MOST_VARIABLES]:
        value = _read_text(row.get("repr"))
        yield Variable(shorten(_read_text(row["name"]), _LONGEST_NAME), shorten(value, _LONGEST_VALUE))


def _read_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _read_number(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else 0
