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
    """Short, for the paths of sockets, and open to the user that jobs run as."""
    made = Path(tempfile.mkdtemp(prefix="chaos-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(autouse=True)
def collect() -> Iterator[None]:
    """What a test leaves to the garbage collector is collected in that test, under its own filters of warnings."""
    yield
    gc.collect()


@pytest.fixture
def site(folder: Path, host: str | None) -> Site:
    """Each executor in its turn."""
    return Site(folder, host)


@pytest.fixture
def docker_site(folder: Path, engine_url: str) -> Site:
    """The engine that all tests share; what is harmed is this test's own."""
    return Site(folder, engine_url)


@pytest.fixture
def process_site(folder: Path) -> Site:
    """This machine."""
    return Site(folder, None)
