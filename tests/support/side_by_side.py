"""How pytest-xdist spreads the tests over its workers: tests that share something stay together, long ones go first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
_FIRST = ("real/pool", "unit/control/test_laws.py", "unit", "chaos", "real/store", "real/process", "real/docker")
"""Folders in the order in which their tests start; the others follow.

- `real/pool` runs on one worker, so it starts before the rest and runs beside it.
- `unit` needs no engine: it runs while `scripts/test` prepares images.
- The rest: the folders with the longest tests first, so that the last minute is not one worker's alone.
"""
_CHEAP_SCOPES = ("function", "class")
_CHEAP = frozenset({"engine_url", "postgres", "tmp_path_factory"})
"""Fixtures of a session that each worker has for itself at no cost."""


def arrange(items: list[pytest.Item]) -> None:
    """Sort the tests, and give those that share something a group, which one worker runs from its first to its last."""
    items.sort(key=lambda item: _rank(_path(item)))
    for item in items:
        group = _choose_group(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


def _path(item: pytest.Item) -> str:
    return item.path.relative_to(_TESTS).as_posix()


def _rank(path: str) -> int:
    return next((rank for rank, start in enumerate(_FIRST) if path.startswith(start)), len(_FIRST))


def _choose_group(item: pytest.Item) -> str:
    """Return the name of the item's group; empty when any worker may run it at any time.

    - Tests of a pool share three engines, a bridge and network namespaces of this machine: one group.
    - Unit tests are short: one group for each file, which costs less than handing them out one by one.
    - Tests of a file that share a fixture of their module or session are one group, so that it is made once.
    """
    path = _path(item)
    if path.startswith("real/pool/"):
        return "pool"
    if item.get_closest_marker("long"):
        return ""
    return path if path.startswith("unit/") or _shares_fixtures(item) else ""


def _shares_fixtures(item: pytest.Item) -> bool:
    """Return True when a fixture of the item lives longer than the item and costs something."""
    if not isinstance(item, pytest.Function):
        return False
    definitions: Sequence[Sequence[pytest.FixtureDef[object]]] = [
        found
        for name in item.fixturenames
        if name not in _CHEAP and (found := item.session._fixturemanager.getfixturedefs(name, item))
    ]
    return any(found[-1].scope not in _CHEAP_SCOPES for found in definitions)
