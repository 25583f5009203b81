"""Broken pool files: the exact position and sentence of every problem (`broken_pools.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.pool.loader import check_pool
from tests.unit.spec.broken_table import read_cases, write_certificates

CASES = read_cases("broken_pools.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the table names."""
    return write_certificates(tmp_path_factory.mktemp("pool"))


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_problem_has_its_position_and_sentence(text: str, expected: list[str], folder: Path) -> None:
    path = folder / "pool.yml"
    told = [str(problem).removeprefix(f"{path}:") for problem in check_pool(text, path).problems]
    assert [line.replace(str(folder), "DIR") for line in told] == expected


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 80
    assert len({title for title, _, _ in CASES}) == len(CASES)
