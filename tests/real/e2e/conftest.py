"""One home a module; after every test nothing may be left of it on the engine."""

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
    """The command in an empty folder."""
    home_console.where = tmp_path
    assert home_console.run("server", "start").code == 0
    yield home_console
    assert home_console.leftovers() == []


@pytest.fixture
def make_console(tmp_path: Path, engine_url: str) -> Iterator[Callable[..., Console]]:
    """Commands with a fresh home; `DOCKER_HOST` and other variables can be set."""
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
    """Writes the project that the command is called in."""
    return lambda config, **files: write(tmp_path, config, **files)
