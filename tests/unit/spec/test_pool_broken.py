"""Broken pool files: the exact position and sentence of every problem (`broken_pools.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.pool.loader import check_pool

TABLE = Path(__file__).with_name("broken_pools.txt")


def _cases() -> list[tuple[str, str, list[str]]]:
    found = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, rest = block.partition("\n")
        text, _, expected = rest.partition("\n>>>>>\n")
        found.append((title, f"{text}\n" if text else "", expected.strip("\n").split("\n")))
    return found


CASES = _cases()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the table names."""
    found = tmp_path_factory.mktemp("pool")
    for name, mode, text in (
        ("ca.pem", 0o644, ""),
        ("cert.pem", 0o644, ""),
        ("key.pem", 0o600, "-----BEGIN PRIVATE KEY-----\n"),
        ("open.pem", 0o644, "-----BEGIN PRIVATE KEY-----\n"),
        ("locked.pem", 0o600, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"),
    ):
        (found / name).write_text(text)
        (found / name).chmod(mode)
    return found


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_problem_has_its_position_and_sentence(text: str, expected: list[str], folder: Path) -> None:
    path = folder / "pool.yml"
    told = [str(problem).removeprefix(f"{path}:") for problem in check_pool(text, path).problems]
    assert [line.replace(str(folder), "DIR") for line in told] == expected


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 80
    assert len({title for title, _, _ in CASES}) == len(CASES)
