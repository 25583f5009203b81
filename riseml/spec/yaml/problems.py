"""What is wrong with a file that a person wrote: where, what, and what to write instead."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from riseml.errors import UsageError
from riseml.spec.scalars.texts import quote_text

KeyPath = tuple[str | int, ...]
"""A position in the file by keys and list indices: ("train", "run", 0)."""

_SHORT = 60
_MOST = 200
_PLAIN_KEY = re.compile(r"[\w-]+")


class Severity(enum.Enum):
    """An error stops the file from being used, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A position in a text; line and column count from 1."""

    file: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `path` is empty when the text is no YAML at all; `hint` is empty when there is nothing to add."""

    file: str
    line: int
    column: int
    path: str
    problem: str
    hint: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" + (f" {self.path}" if self.path else "")
        mark = "warning: " if self.severity is Severity.WARNING else ""
        return f"{where}: {mark}{self.problem}" + (f"; {self.hint}" if self.hint else "")


class SpecError(UsageError):
    """A riseml.yml or a pool.yml has problems. `problems` holds all of them, warnings too, in the order of the text."""

    http_status = 422

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = sum(problem.severity is Severity.ERROR for problem in self.problems)
        file = self.problems[0].file if self.problems else "riseml.yml"
        title = f"{file} has {count} problem{'' if count == 1 else 's'}"
        super().__init__("\n".join([title, *(str(problem) for problem in self.problems)]))


def make_problem(
    position: FilePosition, path: KeyPath, problem: str, hint: str = "", severity: Severity = Severity.ERROR
) -> Problem:
    """A problem at a position of the text and a path of the file."""
    return Problem(position.file, position.line, position.column, format_key_path(path), problem, hint, severity)


def sort_problems(problems: Sequence[Problem], name: str) -> tuple[Problem, ...]:
    """The file's problems by position, then those of the command line; errors survive when there are too many."""
    kept = sorted(problems, key=lambda one: one.severity is Severity.WARNING)[:_MOST]
    kept.sort(key=lambda one: (one.file != name, one.file, one.line, one.column, one.path))
    if len(kept) < len(problems):
        last = FilePosition(kept[-1].file, kept[-1].line, kept[-1].column)
        kept.append(make_problem(last, (), f"{len(problems) - len(kept):,} more problems are not listed"))
    return tuple(kept)


def format_key_path(path: KeyPath) -> str:
    """("train", "run", 0) -> `train.run[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if _PLAIN_KEY.fullmatch(part) and len(part) <= _SHORT else quote_text(part)
            text += f".{shown}" if text else shown
    return text
