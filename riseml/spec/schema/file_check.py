"""Check a file of riseml's home: its text to a value, or to all its problems at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from riseml.base.records import dataclass
from riseml.spec.schema.contract import FileContract
from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.problems import Problem, Severity, sort_problems
from riseml.spec.yaml.values import SourceFile

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class HomeFile:
    """A kind of file."""

    contract: FileContract
    first_step: str  # what a user does who has none
    most_values: int  # nodes of its YAML


def check_home_file(
    kind: HomeFile, content: str | bytes, path: str | Path, build: Callable[[SourceFile, Path], Value]
) -> tuple[Value | None, tuple[Problem, ...]]:
    """Return the value of a file, None with an error, and its problems by position. Content never makes it raise.

    Args:
        kind: of the file.
        content: the text; bytes must be UTF-8.
        path: the file: its name in messages, and its folder is where relative paths in it begin.
        build: makes the value of what matches the schema, and of the folder; it adds problems.
    """
    name = str(path)
    document = parse_document(content, name, kind.first_step, kind.most_values)
    problems = list(document.problems)
    if document.root is None:
        return None, sort_problems(problems, name)
    file = kind.contract.check_values(document.root)
    value = build(file, Path(path).expanduser().absolute().parent)
    problems += file.problems
    usable = all(problem.severity is not Severity.ERROR for problem in problems)
    return value if usable else None, sort_problems(problems, name)
