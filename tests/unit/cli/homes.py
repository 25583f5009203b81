"""Settings of a home."""

from __future__ import annotations

from pathlib import Path

from riseml.base.settings import Settings


def make_settings(home: Path) -> Settings:
    return Settings(home, home / "output", home / "data")
