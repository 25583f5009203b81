"""A pool.yml's folder, with the files that its keys name."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def pool_path(tmp_path: Path) -> Path:
    """Return the path of a pool.yml, in a folder with the files that the texts here name."""
    for name in ("keys/id", "keys/gpu1", "certs/ca.pem", "certs/cert.pem", "certs/key.pem", "ca.pem"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch(0o600)
    return tmp_path / "pool.yml"
