"""What every command gets: the outside world as values, so that a test can pass its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riseml.cli.output.printer import Printer
    from riseml.client import Client
    from riseml.settings import Settings


class Exit(Exception):
    """Ends the command with this exit code; every message is already printed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The surroundings of one command.

    Example:
        execute(["status"], CommandContext(printer, {"RISEML_HOME": "/tmp/home"}, Path.cwd()))
    """

    printer: Printer
    environ: Mapping[str, str]
    folder: Path  # the working directory
    asks: bool = False  # True when a user can answer questions: standard input is a terminal
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)  # takes seconds

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)  # noqa: TID251  # the command line's clock; the server's is server.clock

    def settings(self) -> Settings:
        """Return the settings of this user."""
        from riseml.settings import read_settings

        return read_settings(self.environ)

    def connect(self) -> Client:
        """Return a client of the server; start the user's own server when it does not run."""
        from riseml.cli.local_server import connect_client

        return connect_client(self.settings(), self.environ, self.printer)

    def connect_to_run(self) -> Client:
        """Return a client for a command that runs jobs: the server uses the executor that the user asks for."""
        from riseml.cli.local_server import switch_executor

        client = self.connect()
        try:
            switch_executor(client, self.settings(), self.printer)
        except BaseException:
            client.close()
            raise
        return client
