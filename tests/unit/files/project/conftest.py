"""Settings of git that no test takes from the machine."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_settings_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
