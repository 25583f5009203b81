"""The store of samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.store.samples.sample_store import SampleStore


@pytest.fixture
def store(tmp_path: Path) -> SampleStore:
    return SampleStore(tmp_path / "samples")
