"""The context of every command (streams, environment, clock) as values, so that a test can pass its own."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from riseml.base.records import dataclass

if TYPE_CHECKING:
    from riseml.base.errors import RisemlError
    from riseml.base.settings import Settings
    from riseml.cli.output.printer import Printer
    from riseml.client.server_client import Client


def wait_or_resize(seconds: float) -> None:
    """Wait, at most until the size of the terminal changes.

    The handler writes to a pipe and nothing else, so that a signal at any moment is harmless. A thread other than the
    main one gets no signals, and waits for the whole time.
    """
    if threading.current_thread() is not threading.main_thread():
        threading.Event().wait(seconds)
        return
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(_number: int, _frame: FrameType | None) -> None:
        os.write(writing, b"!")

    before = signal.signal(signal.SIGWINCH, wake)
    try:
        select.select([reading], [], [], seconds)
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)


class Exit(Exception):
    """Ends the command with this exit code; every message is already printed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The context of one command.

    Example:
        execute(["status"], CommandContext(printer, {"RISEML_HOME": "/tmp/home"}, Path.cwd()))
    """

    printer: Printer
    environ: Mapping[str, str]
    folder: Path  # the working directory
    asks: bool = False  # True when a user can answer questions: standard input and standard error are a terminal
    json_errors: bool = False  # the user wrote --json: errors are JSON, too
    wait: Callable[[float], object] = wait_or_resize  # takes seconds

    @property
    def messages(self) -> Printer:
        """What tells the user how a submission goes (see `riseml.submission.submitter`)."""
        return self.printer

    def print_error(self, error: RisemlError) -> None:
        """Print an error: as text for people, or with `--json` as a `wire.CommandError`."""
        if not self.json_errors:
            self.printer.print_error(error)
            return
        from riseml.submission.error_fields import list_error_fields

        self.printer.print_json_error({"error": list_error_fields(error)})

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)  # noqa: TID251  # the command line's clock; the server's is server.clock

    def settings(self) -> Settings:
        """Return the settings of this user."""
        from riseml.base.settings import read_settings

        return read_settings(self.environ)

    def connect(self) -> Client:
        """Return a client of the server; start the user's own server when it does not run."""
        from riseml.submission.local_server import connect_client

        return connect_client(self.settings(), self.environ, self.printer)

    def ask(self, question: str, *, default: bool = False) -> bool:
        """Return whether the user says yes; the text may be foreign. Enter alone is the default."""
        import typer

        from riseml.cli.output.text import clean_text

        text = clean_text(question)
        return typer.confirm(text, err=True, default=True) if default else typer.confirm(text, err=True)

    def ask_for_text(self, question: str, default: str | None = None) -> str:
        """Return what the user types; the text may be foreign. Enter alone is the default, where there is one."""
        import typer

        from riseml.cli.output.text import clean_text

        return str(typer.prompt(clean_text(question), err=True, default=default))

    def ask_for_secret(self, question: str) -> str:
        """Return what the user types, which the terminal does not show; the text of the question may be foreign."""
        import typer

        from riseml.cli.output.text import clean_text

        return str(typer.prompt(clean_text(question), err=True, hide_input=True))

    def connect_to_run(self) -> Client:
        """Return a client for a command that runs jobs: the server uses the executor that the user asks for.

        Raises:
            Refused: jobs would run as processes, and the user did not choose that.
        """
        from riseml.submission.submitting import connect_to_run

        return connect_to_run(self)
