"""Fixtures of the command line's tests."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from riseml.cli.context import CommandContext
from riseml.cli.main import execute
from riseml.cli.output.printer import Printer
from riseml.client import Address, Client, RetryPolicy
from tests.unit.cli.door import Door, open_door

CONFIG = """\
project: ai-toaster
train:
  image: python:3.11
  resources: {cpus: 1, mem: 512MiB}
  run: python train.py
"""


@pytest.fixture(scope="session")
def running_door() -> Iterator[Door]:
    with open_door() as door:
        yield door


@pytest.fixture
def door(running_door: Door) -> Door:
    running_door.reset()
    return running_door


@pytest.fixture
def client(door: Door) -> Iterator[Client]:
    """A client that never waits."""
    with Client(Address(door.home / "server.sock"), RetryPolicy(wait=lambda _: None)) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "riseml.yml").write_text(CONFIG)
    (place / "train.py").write_text("print('toast')\n")
    return place


@dataclass(frozen=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str


Riseml = Callable[..., Result]


@pytest.fixture
def riseml(door: Door, folder: Path) -> Riseml:
    """Runs one command line in the project, against the door."""

    def call(
        *words: str,
        environ: dict[str, str] | None = None,
        live: bool = False,
        where: Path | None = None,
        asks: bool = False,
    ) -> Result:
        printer = Printer(io.StringIO(), io.StringIO(), colour=live, err_colour=live, live=live)
        surroundings = {"RISEML_HOME": str(door.home)} | (environ or {})
        context = CommandContext(printer, surroundings, where or folder, asks=asks, wait=lambda _: None)
        code = execute(words, context)
        assert isinstance(printer.out, io.StringIO)
        assert isinstance(printer.err, io.StringIO)
        return Result(code, printer.out.getvalue(), printer.err.getvalue())

    return call
