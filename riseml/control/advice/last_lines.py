"""The last lines of a failed job that users see: the line that says the cause is among them. Pure.

Many programs print more after the error itself: frames of native code, blank lines, the report of a launcher. Ten last
lines alone would then show everything but the cause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from riseml.base.records import dataclass

PRINTED_LINES = 400
"""Last lines of a job that are searched for its cause: a report of torchrun has ten lines for each rank."""

_SHOWN = 10  # lines
_SHOWN_BEFORE = 4  # lines before the cause, when other lines separate it from the end
_SHOWN_BEHIND_FIRST = 2  # the same, when the error with which a chain began is shown, too
_SHOWN_MESSAGE = 2  # lines behind the cause, which are usually the rest of its message or the top of a stack
_LONGEST_LINE = 400  # characters of a line that are searched
_MOST_LATER = 30  # lines that a program prints while it fails; after more of them, the program had handled the error

_PREFIX = (
    r"(?:\x1b\[[\d;]*m){0,4}(?:\[[^\]\n]{1,40}\](?:<std(?:err|out)>)?:? ?)?"
    r"(?:\(\w{1,40} pid=\d{1,9}[^)\n]{0,60}\) )?(?: {2,8}\| )?"
)
"""What launchers and groups of exceptions write before a line: `[rank0]: `, `[1]<stderr>:`, `(worker pid=7) `."""

_TRACEBACK = re.compile(r"^(?P<prefix>.{0,80}?)(?:\+ Exception Group )?Traceback \(most recent call last\):\s*$")
_EXCEPTION = re.compile(
    rf"^{_PREFIX}[A-Za-z_][\w.]{{0,120}}(?:Error|Exception|Interrupt|Exit)(?:\(\w{{1,80}}\))?(?::\s|:?$)"
)
_FATAL = re.compile(
    rf"^{_PREFIX}(?:terminate called after |  what\(\): |Fatal Python error: |thread '[^']*' panicked at |panic: "
    r"|F\d{4,8} [^\]]{0,80}\] |FATAL[: ]|fatal: )"
)
_CONSEQUENCE = re.compile(
    # A launcher whose program has failed.
    r"ChildFailedError|subprocess\.CalledProcessError: Command"
    r"|line \d+: +\d+ (?:Aborted|Killed|Terminated|Segmentation)"
    # A rank that lost another one.
    r"|Horovod has been shut down|HorovodInternalError|Process \d+ exit with status code"
    r"|(?i:connection (?:closed|reset|aborted) by (?:remote )?peer)|ncclRemoteError|terminate called without an active"
)
_CHAINED = re.compile(
    rf"^(?P<prefix>{_PREFIX})(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\s*$"
)
_STACK_LINE = re.compile(rf"^{_PREFIX} {{2,4}}File \"[^\"]{{1,200}}\", line \d+ in ")
"""A line of the stack that Python's faulthandler prints behind the error; it may have a hundred, of each thread."""

_FRAME = re.compile(
    # Frames of native code, as dmlc and XGBoost, PyTorch, gdb, boost, glog, OpenMPI, glibc and TensorFlow print them.
    rf"^{_PREFIX}\s*(?:$|\[bt\] |frame #\d+:|#\d+ +0x|\d+# |@ +0x[0-9a-f]|\[\S{{1,80}}:\d+\] (?:\[ *\d+\]|\*\*\*) "
    r"|\S{1,200} ?\[0x[0-9a-f]+\]$|Stack trace:|Stack trace \(most recent|\*\*\* (?:Begin|End|SIG|Abort)|_?Py\w+$"
    r"|(?:tsl|tensorflow|xla|c10)::|__libc_start|_start$|clone3?$|C\+\+ CapturedTraceback"
    r"|Exception raised from .* \(most recent call first\):|\(?no backtrace available|<omitting python frames>"
    # The report of torchrun.
    r"|[=-]{8,}$|\S{1,200} FAILED$|Failures:$|Root Cause \(first|<NO_OTHER_FAILURES>|\[\d+\]:$"
    r"|(?:time|host|rank|exitcode|error_file|traceback|msg) *: |[WE]\d{4} .{0,120}torch/distributed/\S+\] "
    r"|(?:ERROR|WARNING|INFO):torch\.distributed\."
    # Warnings of Python, and the summary of Weights & Biases, which come while the program ends.
    r"|(?:\S{1,200}:\d+: )?\w{0,60}Warning: |\s*warnings\.warn\(|wandb: (?!.*(?i:error|api.key|login))"
    # The report of mpirun.
    r"|Primary job +terminated normally|a non-zero exit code\. Per user-direction|mpirun\S* (?:detected|noticed) that"
    r"|the job to be terminated\. The first|Process name: |Exit code: +\d)"
)


@dataclass(frozen=True, slots=True)
class _Raised:
    """An error that a program printed."""

    begin: int  # index of its first line: of its traceback, if it has one
    line: int  # index of the line that says what it is
    is_consequence: bool  # another error caused it, and says more
    first: int | None = None  # index of the line of the error with which its chain began; None: it has no chain


def is_exception(line: str) -> bool:
    """Return True for the last line of a Python traceback, as far as its name shows it: `ValueError: no`."""
    return _EXCEPTION.match(line[:_LONGEST_LINE]) is not None


def drop_frames(lines: Sequence[str]) -> list[str]:
    """Return the lines without blank ones, frames of native code and the reports of launchers."""
    return [line for line in lines if not _FRAME.match(line[:_LONGEST_LINE])]


def choose_last_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return at most ten of the last lines of a job, among them the line that says the cause, when one does.

    Between the cause and the end, lines that say less are left out; a line of its own counts them.

    Args:
        lines: the last lines that the job printed, oldest first.
    """
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    raised = _find_raised(lines[:end])
    tracebacks = {index for error in raised if error.is_consequence for index in range(error.begin, error.line + 1)}
    telling = [
        index for index in range(end) if index not in tracebacks and not _FRAME.match(lines[index][:_LONGEST_LINE])
    ]
    error = _find_cause(lines, raised, telling)
    if error is None:
        return tuple(lines[max(0, end - _SHOWN) : end])
    if error.first is None or error.first >= end - _SHOWN:
        return _choose_tail(lines[:end], error.line, telling, _SHOWN, _SHOWN_BEFORE)[1]
    begin, tail = _choose_tail(lines[:end], error.line, telling, _SHOWN - 2, _SHOWN_BEHIND_FIRST)
    if begin <= error.first:
        return tail
    return (lines[error.first], *_mark_left_out(begin - error.first - 1), *tail)


def _choose_tail(
    lines: Sequence[str], cause: int, telling: Sequence[int], most: int, before: int
) -> tuple[int, tuple[str, ...]]:
    """Return some lines before the cause, the cause, the begin of its message, and the last lines.

    Args:
        lines: the lines that the job printed, without blank ones at the end.
        cause: the index of the line that says the cause.
        telling: the indexes of the lines that are no frames and no consequences.
        most: the largest number of lines to return.
        before: the largest number of lines before the cause, when other lines separate it from the end.

    Returns:
        the index of the first of these lines, and the lines.
    """
    end = len(lines)
    if cause >= end - most:
        begin = max(0, end - most)
        return begin, tuple(lines[begin:])
    behind = [index for index in telling if index > cause]
    message: list[int] = []
    for index in behind[:_SHOWN_MESSAGE]:
        if sum(1 for line in lines[cause + 1 : index] if line.strip()) == len(message):
            message.append(index)
    begin = max(0, cause - max(0, before - len(message)))
    further = behind[len(message) :]
    room = most - (cause + 1 - begin) - len(message) - 1
    last = further[max(0, len(further) - room) :]
    mark = _mark_left_out(end - cause - 1 - len(message) - len(last))
    texts = [lines[index] for index in (*range(begin, cause + 1), *message)]
    return begin, (*texts, *mark, *(lines[index] for index in last))


def _mark_left_out(count: int) -> tuple[str, ...]:
    """Return the line that stands for lines that are not shown; none when all are."""
    return (f"[... {count} more line{'' if count == 1 else 's'}]",) if count else ()


def _find_cause(lines: Sequence[str], raised: Sequence[_Raised], telling: Sequence[int]) -> _Raised | None:
    """Return the error that ended the program; None when no line says it.

    Args:
        lines: the lines that the job printed.
        raised: the errors, in order.
        telling: the indexes of the lines that are no frames and no consequences.
    """
    error = next((error for error in reversed(raised) if not error.is_consequence), raised[-1] if raised else None)
    if error is None:
        return None
    later = sum(1 for index in telling if index > error.line and not _STACK_LINE.match(lines[index][:_LONGEST_LINE]))
    return error if later <= _MOST_LATER else None


def _find_raised(lines: Sequence[str]) -> list[_Raised]:
    """Return the errors in order: the ends of tracebacks, and lines that name one by themselves."""
    raised: list[_Raised] = []
    headers: dict[str, int] = {}  # what is before each line of a traceback -> the index of its first line
    above: _Raised | None = None  # the error that the next one of a chain follows
    for index, line in enumerate(line[:_LONGEST_LINE] for line in lines):
        header = _TRACEBACK.match(line)
        if header is not None:
            headers[header["prefix"]] = index
            continue
        chained = _CHAINED.match(line)
        if chained is not None:
            above = next((error for error in reversed(raised) if lines[error.line].startswith(chained["prefix"])), None)
            continue
        prefix = max((prefix for prefix in headers if _ends_traceback(line, prefix)), key=len, default=None)
        if prefix is not None or _EXCEPTION.match(line) or _FATAL.match(line):
            begin = index if prefix is None else headers.pop(prefix)
            raised.append(_Raised(begin, index, _CONSEQUENCE.search(line) is not None, _find_first(above)))
            above = None
    return raised


def _find_first(above: _Raised | None) -> int | None:
    """Return the index of the line of the first error of a chain, whose last error so far is `above`."""
    if above is None:
        return None
    return above.line if above.first is None else above.first


def _ends_traceback(line: str, prefix: str) -> bool:
    """Return True for the first line of a traceback with this prefix that is not indented: it names the exception."""
    text = line.removeprefix(prefix)
    return line.startswith(prefix) and bool(text.strip()) and not text[0].isspace()
