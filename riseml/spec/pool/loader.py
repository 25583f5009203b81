"""The way in: the text of a pool.yml to a `PoolSpec`, or to all its problems at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from riseml.spec.pool.builder import build_pool
from riseml.spec.pool.types import PoolSpec
from riseml.spec.schema.contract import POOL
from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.problems import Problem, Severity, SpecError, sort_problems

_MOST_VALUES = 100_000  # a thousand hosts with all their keys; the file's size is bounded, too
_FIRST = "pool.yml.example shows what it may say; without a pool.yml the local engine is used"


@dataclass(frozen=True, slots=True)
class CheckedPool:
    """A file that was read. `spec` is None when one of the problems is an error; problems are in the file's order."""

    spec: PoolSpec | None
    problems: tuple[Problem, ...]


def check_pool(content: str | bytes, path: str | Path) -> CheckedPool:
    """Read a pool.yml. Never raises, whatever the content is.

    Args:
        content: the text; bytes must be UTF-8.
        path: the file. Problems are shown with it, and paths in the file are relative to its folder.
    """
    name = str(path)
    document = parse_document(content, name, _FIRST, _MOST_VALUES)
    found = list(document.problems)
    if document.root is None:
        return CheckedPool(None, sort_problems(found, name))
    file = POOL.check_values(document.root)
    spec = build_pool(file, Path(path).expanduser().absolute().parent)
    found += file.problems
    usable = all(problem.severity is not Severity.ERROR for problem in found)
    return CheckedPool(spec if usable else None, sort_problems(found, name))


def load_pool(content: str | bytes, path: str | Path) -> PoolSpec:
    """Read a pool.yml that has to be right; the arguments are those of `check_pool`.

    Raises:
        SpecError: it has problems; all of them are listed.
    """
    checked = check_pool(content, path)
    if checked.spec is None:
        raise SpecError(checked.problems)
    return checked.spec
