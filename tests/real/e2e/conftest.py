"""One home for each module. After every test, nothing of it may remain on the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real.e2e.console import Console, write


@pytest.fixture(scope="module")
def home_console(tmp_path_factory: pytest.TempPathFactory, engine_url: str) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("e2e")
    console = Console(folder / "home", engine_url, folder)
    yield console
    console.close()


@pytest.fixture
def console(home_console: Console, tmp_path: Path) -> Iterator[Console]:
    """Return the command in an empty folder."""
    home_console.where = tmp_path
    assert home_console.run("server", "start").code == 0
    yield home_console
    assert home_console.leftovers() == []


@pytest.fixture
def make_console(tmp_path: Path, engine_url: str) -> Iterator[Callable[..., Console]]:
    """Return a function that makes commands with a new home and the variables that it gets."""
    made: list[Console] = []

    def make(**environment: str) -> Console:
        folder = tmp_path / str(len(made))
        (folder / "project").mkdir(parents=True)
        made.append(Console(folder / "home", engine_url, folder / "project", **environment))
        return made[-1]

    yield make
    for console in made:
        console.close()


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the project in the working directory."""
    return lambda config, **files: write(tmp_path, config, **files)
