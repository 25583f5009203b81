"""Broken server files: the exact position and sentence of every problem (`broken_servers.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.schema.contract import SERVER_CONTRACT
from riseml.spec.server.loader import check_server_config
from riseml.spec.yaml.problems import format_key_path
from tests.unit.spec.broken_table import read_cases, write_certificates

CASES = read_cases("broken_servers.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the table names."""
    return write_certificates(tmp_path_factory.mktemp("server"))


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_problem_has_its_position_and_sentence(text: str, expected: list[str], folder: Path) -> None:
    path = folder / "server.yml"
    told = [str(problem).removeprefix(f"{path}:") for problem in check_server_config(text, path).problems]
    assert [line.replace(str(folder), "DIR") for line in told] == expected


def test_every_key_has_three_wrong_forms_and_names_are_unique() -> None:
    refused: dict[str, set[str]] = {}
    for title, text, expected in CASES:
        for line in expected:
            refused.setdefault(line.split(": ")[0].partition(" ")[2], set()).add(text)
        assert title
    assert len({title for title, _, _ in CASES}) == len(CASES)
    paths = {path for path, _ in SERVER_CONTRACT.walk()}
    for path in paths:
        pattern = format_key_path(path)
        named = pattern.replace("quotas.project.", "quotas.user.")
        forms = {
            form
            for name, texts in refused.items()
            for form in texts
            if _stands_for(name.replace("quotas.project.", "quotas.user."), named)
        }
        assert len(forms) >= 3, f"{pattern} has {len(forms)}"


def _stands_for(name: str, pattern: str) -> bool:
    """Return True when a path of a problem is that of a key, of an item of it, or of a key inside of it."""
    shown = pattern.replace("[0]", "")
    if "NAME" in shown:
        before, _, after = shown.partition(".NAME")
        return name.startswith(f"{before}.") and name.endswith(after)
    return name == shown or name.startswith((f"{shown}[", f"{shown}."))
