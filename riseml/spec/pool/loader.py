"""Load a pool.yml: its text to a `PoolSpec`, or to all its problems at once."""

from __future__ import annotations

from pathlib import Path

from riseml.base.records import dataclass
from riseml.spec.pool.builder import build_pool
from riseml.spec.pool.types import PoolSpec
from riseml.spec.schema.contract import POOL_CONTRACT
from riseml.spec.schema.file_check import HomeFile, check_home_file
from riseml.spec.yaml.problems import Problem, SpecError

_FILE = HomeFile(
    POOL_CONTRACT,
    "pool.yml.example shows every key; without a pool.yml, riseml uses the local engine",
    most_values=100_000,  # enough for a thousand hosts with all their keys
)


@dataclass(frozen=True, slots=True)
class CheckedPool:
    """The result of checking a pool.yml."""

    spec: PoolSpec | None  # None: one of the problems is an error
    problems: tuple[Problem, ...]  # by position


def check_pool(content: str | bytes, path: str | Path) -> CheckedPool:
    """Check a pool.yml. Content never makes it raise; problems are in the result.

    Args:
        content: the text; bytes must be UTF-8.
        path: the file: its name in messages, and its folder is where relative paths in it begin.
    """
    return CheckedPool(*check_home_file(_FILE, content, path, build_pool))


def load_pool(content: str | bytes, path: str | Path) -> PoolSpec:
    """Return the content of a pool.yml; the arguments are those of `check_pool`.

    Raises:
        SpecError: the file has errors; all its problems are listed.
    """
    checked = check_pool(content, path)
    if checked.spec is None:
        raise SpecError(checked.problems)
    return checked.spec
