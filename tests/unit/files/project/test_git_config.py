"""Configuration files of git, read as git reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from riseml.files.project.git_config import find_last, parse_config


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[core]\n\texcludesFile = ~/x\n", "~/x"),
        ("[CORE] ExcludesFile=a b  ; mine\n", "a b"),
        ('[core]\nexcludesFile = "a # b " \\\n c\n', "a # b   c"),
        ('[core]\nexcludesFile = a\\\\b\\"c\n', 'a\\b"c'),
        ("[core]\nexcludesFile\n", "true"),
        ("[core]\nexcludesFile = a\n[core]\nexcludesFile = b\n", "b"),
        ('[core "x"]\nexcludesFile = a\n', None),
        ("[core\nexcludesFile = a\n", None),
        ("# [core]\nexcludesFile = a\n", None),
        ('[remote "]"]\n[core]\nexcludesFile = a\n', "a"),
        ("[core]\nexcludesFile =\n", ""),
    ],
)
def test_the_configuration_is_read_as_git_reads_it(tmp_path: Path, text: str, value: str | None) -> None:
    assert find_last(parse_config(text), "core.excludesfile") == value
    file = tmp_path / "config"
    file.write_text(text)
    asked = subprocess.run(
        ["git", "config", "-f", str(file), "--get", "core.excludesFile"], capture_output=True, text=True, check=False
    )
    if asked.returncode in (0, 1):  # git refuses a malformed file
        assert (asked.stdout[:-1] or "true" if asked.returncode == 0 and value else value) == value
        assert asked.returncode == (1 if value is None else 0)
