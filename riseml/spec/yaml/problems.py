"""Problems of a file: where, what is wrong, and what to write instead."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import Literal, TypedDict

from riseml.base.amounts import count_noun
from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.spec.scalars.texts import quote_text

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the top of a file to a value: ("train", "run", 0)."""

_LONGEST_KEY = 60  # characters that a path shows without quotes
_MOST = 200  # problems of one file that are listed
_PLAIN_KEY = re.compile(r"[\w-]+")


class Severity(enum.Enum):
    """An error stops the file from being used, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A position in a file."""

    file: str  # its name in messages; for an option of the command line: the option as written
    line: int = 1  # from 1
    column: int = 1  # from 1, in characters


class ProblemFields(TypedDict):
    """A problem as JSON shows it."""

    file: str
    line: int
    column: int
    path: str
    problem: str
    hint: str
    severity: Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file. `str(problem)` is the line that users see."""

    file: str  # its name in messages; for an option of the command line: the option as written
    line: int  # from 1
    column: int  # from 1, in characters
    path: str  # `train.resources.mem`; empty when the text is not YAML
    problem: str  # what is wrong
    hint: str  # what to write instead; empty when there is nothing to add
    severity: Severity = Severity.ERROR

    def to_fields(self) -> ProblemFields:
        """Return the problem as JSON shows it: for `validate --json` and for refusals of the HTTP API."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "problem": self.problem,
            "hint": self.hint,
            "severity": "warning" if self.severity is Severity.WARNING else "error",
        }

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" + (f" {self.path}" if self.path else "")
        mark = "warning: " if self.severity is Severity.WARNING else ""
        return f"{where}: {mark}{self.problem}" + (f"; {self.hint}" if self.hint else "")


class SpecError(UsageError):
    """A file such as riseml.yml has errors. `problems` has all of them and the warnings, in the order of the text."""

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
    """Return the problem of a value or a key."""
    return Problem(position.file, position.line, position.column, format_key_path(path), problem, hint, severity)


def sort_problems(problems: Sequence[Problem], name: str) -> tuple[Problem, ...]:
    """Return the problems by position, those of the command line last.

    At most 200 are kept, errors before warnings; one more says how many are missing.
    """
    first = sorted(problems, key=lambda problem: problem.severity is Severity.WARNING)[:_MOST]
    first.sort(key=lambda problem: (problem.file != name, problem.file, problem.line, problem.column, problem.path))
    if len(first) < len(problems):
        last = FilePosition(first[-1].file, first[-1].line, first[-1].column)
        first.append(make_problem(last, (), f"{len(problems) - len(first):,} more problems are not listed"))
    return tuple(first)


def format_key_path(path: KeyPath) -> str:
    """Return a path as users read it: ("train", "run", 0) -> `train.run[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            part_text = part if _PLAIN_KEY.fullmatch(part) and len(part) <= _LONGEST_KEY else quote_text(part)
            text += f".{part_text}" if text else part_text
    return text


def count_problems(problems: Sequence[Problem]) -> str:
    """Return `2 problems, 1 warning`."""
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    warnings = len(problems) - errors
    parts = [count_noun(errors, "problem") if errors else "", count_noun(warnings, "warning") if warnings else ""]
    return ", ".join(part for part in parts if part)
