"""What keeps a tree from being released. tests/real/package makes a whole release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.releasing import find_changelog_problems, main

CHANGES = "# Changelog\n\n## [Unreleased]\n\n## [2.0.0] - 2026-01-01\n\n### Added\n\n- All of it.\n"


def test_a_whole_section_has_no_problem() -> None:
    assert list(find_changelog_problems(CHANGES, "2.0.0")) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("## [2.0.0] - 2026-01-01", "## [1.0.0]", "CHANGELOG.md has no section `## [2.0.0] - YYYY-MM-DD`"),
        (" - 2026-01-01", "", "the section [2.0.0] of CHANGELOG.md has no date"),
        ("- All of it.", "", "the section [2.0.0] of CHANGELOG.md says nothing that changed"),
        ("[Unreleased]\n", "[Unreleased]\n\n- More.\n", "CHANGELOG.md has changes below [Unreleased]"),
    ],
)
def test_a_changelog_that_is_not_ready(before: str, after: str, problem: str) -> None:
    (said,) = find_changelog_problems(CHANGES.replace(before, after), "2.0.0")
    assert said.startswith(problem)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "usage: scripts/release [--check] VERSION"),
        (["--check"], 2, "usage: "),
        (["--publish", "2.0.0"], 2, "usage: "),
        (["--check", "two"], 1, "'two' is no version (PEP 440)"),
        (["--check", "2.0.0-rc1"], 1, "'2.0.0-rc1' is written '2.0.0rc1'"),
        (["--check", "2.0.1"], 1, "riseml/__init__.py has the version 2.0.0: write 2.0.1 there"),
        (["2.0.0"], 1, "files differ from the last commit"),
    ],
)
def test_a_wrong_call_builds_nothing(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "riseml").mkdir()
    (tmp_path / "riseml/__init__.py").write_text('__version__ = "2.0.0"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "2.0.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert main(words, tmp_path) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()
