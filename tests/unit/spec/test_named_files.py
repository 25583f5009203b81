"""The files that a pool.yml names."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.pool.loader import check_pool, load_pool


def test_files_are_found_from_any_folder(pool_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pool_path.parent)
    text = "hosts: [{name: a, url: ssh://a, identity: keys/id}]\n"
    assert load_pool(text, "pool.yml").hosts[0].identity == str(pool_path.parent / "keys" / "id")


def test_a_file_name_that_is_too_long_is_a_problem() -> None:
    checked = check_pool(f"hosts: [{{name: a, url: ssh://a, identity: /{'x' * 300}}}]\n", "pool.yml")
    assert [problem.path for problem in checked.problems] == ["hosts[0].identity"]
    assert "File name too long" in checked.problems[0].problem
