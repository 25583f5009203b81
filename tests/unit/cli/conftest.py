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
from riseml.client.server_client import Address, Client, RetryPolicy
from tests.unit.cli.fake_server import FakeServer, open_fake_server

CONFIG = """\
project: ai-toaster
train:
  image: python:3.11
  resources: {cpus: 1, mem: 512MiB}
  run: python train.py
"""


@pytest.fixture(scope="session")
def running_fake_server() -> Iterator[FakeServer]:
    with open_fake_server() as fake_server:
        yield fake_server


@pytest.fixture
def fake_server(running_fake_server: FakeServer) -> FakeServer:
    running_fake_server.reset()
    return running_fake_server


@pytest.fixture
def client(fake_server: FakeServer) -> Iterator[Client]:
    """Return a client that never waits."""
    with Client(Address(fake_server.home / "server.sock"), RetryPolicy(wait=lambda _: None)) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a project folder."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "riseml.yml").write_text(CONFIG)
    (place / "train.py").write_text("print('toast')\n")
    return place


@dataclass(frozen=True)
class Result:
    """The result of one command line."""

    code: int
    out: str
    err: str


Riseml = Callable[..., Result]


@pytest.fixture
def riseml(fake_server: FakeServer, folder: Path) -> Riseml:
    """Return a function that runs one command line in the project, with the fake server."""

    def call(
        *words: str,
        environ: dict[str, str] | None = None,
        live: bool = False,
        where: Path | None = None,
        asks: bool = False,
    ) -> Result:
        printer = Printer(io.StringIO(), io.StringIO(), colour=live, err_colour=live, live=live)
        surroundings = {"RISEML_HOME": str(fake_server.home)} | (environ or {})
        context = CommandContext(printer, surroundings, where or folder, asks=asks, wait=lambda _: None)
        code = execute(words, context)
        assert isinstance(printer.out, io.StringIO)
        assert isinstance(printer.err, io.StringIO)
        return Result(code, printer.out.getvalue(), printer.err.getvalue())

    return call
