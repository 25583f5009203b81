"""A site for each executor."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.sites import Site


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, because it holds sockets, that the user of the jobs may enter."""
    made = Path(tempfile.mkdtemp(prefix="chaos-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(autouse=True)
def collect() -> Iterator[None]:
    """Collect garbage at the end of each test, so that its warnings meet the filters of that test."""
    yield
    gc.collect()


@pytest.fixture
def site(folder: Path, host: str | None) -> Site:
    """A site of each executor."""
    return Site(folder, host)


@pytest.fixture
def docker_site(folder: Path, engine_url: str) -> Site:
    """The engine that all tests share; each test harms only its own server's jobs."""
    return Site(folder, engine_url)


@pytest.fixture
def process_site(folder: Path) -> Site:
    """A site whose jobs are processes of this machine."""
    return Site(folder, None)
