"""Errors, warnings, notes and problems of riseml.yml as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from riseml.base.errors import RisemlError
from riseml.cli.output.style import paint
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import cut_to_width, measure_width

if TYPE_CHECKING:
    from riseml.spec.yaml.problems import Problem

_QUOTE_WIDTH = 70  # the most columns of a line of the file that are shown
_ERROR = "1;31"  # SGR codes
_WARNING = "1;33"
_HINT = "1;36"


def describe_error(error: RisemlError, *, colour: bool = False) -> list[str]:
    """Return `error: ...`, and `hint: ...` when the error has one. Further lines of a message are indented.

    Example:
        >>> describe_error(RisemlError("there is no experiment 9", "`riseml status -a` lists yours"))
        ['error: there is no experiment 9', 'hint: `riseml status -a` lists yours']
    """
    lines = _label_text("error", error.message, _ERROR, colour=colour)
    return lines + (_label_text("hint", error.hint, _HINT, colour=colour) if error.hint else [])


def describe_warning(message: str, *, colour: bool = False) -> list[str]:
    """Return `warning: ...`. Further lines of the message are indented."""
    return _label_text("warning", message, _WARNING, colour=colour)


def describe_note(message: str, *, colour: bool = False) -> str:
    """Return `note: ...`."""
    return f"{paint('note:', _HINT, colour=colour)} {clean_text(message)}"


def _label_text(label: str, text: str, code: str, *, colour: bool) -> list[str]:
    first, *more = [clean_text(line) for line in text.splitlines()] or [""]
    return [f"{paint(label + ':', code, colour=colour)} {first}", *(f"  {line}" for line in more)]


def describe_problems(problems: Sequence[Problem], name: str, text: str, *, colour: bool = False) -> Iterator[str]:
    """Yield each problem with its position; problems of the file `name` with the line and a caret below it."""
    source = text.splitlines()
    for problem in problems:
        severity = problem.severity.value
        code = _ERROR if severity == "error" else _WARNING
        in_file = problem.file == name
        position = f"{problem.file}:{problem.line}:{problem.column}:" if in_file else f"{problem.file}:"
        path = f" {problem.path}:" if problem.path else ""
        label = paint(severity + ":", code, colour=colour)
        yield f"{clean_text(position)} {label}{clean_text(path)} {clean_text(problem.problem)}"
        if in_file:
            yield from _quote_line(problem, source, code, colour=colour)
        if problem.hint:
            yield f"  {paint('hint:', _HINT, colour=colour)} {clean_text(problem.hint)}"


def _quote_line(problem: Problem, source: Sequence[str], code: str, *, colour: bool) -> Iterable[str]:
    if not 1 <= problem.line <= len(source):
        return ()
    number = f"{problem.line:>5} | "
    whole = source[problem.line - 1].replace("\t", " ")
    cleaned = clean_text(whole)
    if cleaned != whole or problem.column > len(whole) + 1:
        return (number + cut_to_width(cleaned, _QUOTE_WIDTH),)  # a caret could point at the wrong character
    # A long line is cut around the position of the problem.
    start = max(0, problem.column - _QUOTE_WIDTH // 2) if measure_width(cleaned) > _QUOTE_WIDTH else 0
    before = measure_width(cleaned[start : problem.column - 1])
    caret = " " * (len(number) - 2) + "| " + " " * before
    return (number + cut_to_width(cleaned[start:], _QUOTE_WIDTH), caret + paint("^", code, colour=colour))
