"""The variables of installers: uv gets what the user has told pip."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.environments.venv_recipe import make_installer_variables

VARIABLES = ("PIP_CONFIG_FILE", "PIP_FIND_LINKS", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_FIND_LINKS", "UV_INDEX_URL")


@pytest.fixture(autouse=True)
def pip_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose file of pip names two folders of wheels."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text("[global]\nfind-links = /wheels/a\n  /wheels/b\n")


def test_uv_gets_what_a_file_of_pip_names() -> None:
    assert make_installer_variables({})["UV_FIND_LINKS"] == "/wheels/a,/wheels/b"


def test_a_variable_of_pip_comes_before_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/other")
    monkeypatch.setenv("PIP_INDEX_URL", "https://wheels.example")
    found = make_installer_variables({})
    assert (found["UV_FIND_LINKS"], found["UV_DEFAULT_INDEX"]) == ("/other", "https://wheels.example")


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_a_variable_of_uv_stays(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://wheels.example")
    monkeypatch.setenv("UV_FIND_LINKS", "/mine")
    monkeypatch.setenv(name, "https://own.example")
    found = make_installer_variables({})
    assert found[name] == "https://own.example"
    assert found["UV_FIND_LINKS"] == "/mine"
    assert "https://wheels.example" not in (found.get("UV_DEFAULT_INDEX"), found.get("UV_INDEX_URL"))
