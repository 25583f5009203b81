"""The program that calls riseml, as the user of a submission: it prints nothing and asks no questions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from riseml.base.records import dataclass
from riseml.base.settings import read_settings
from riseml.python_api.errors import add_hints

if TYPE_CHECKING:
    from riseml.base.settings import Settings
    from riseml.client.server_client import Client
    from riseml.spec.yaml.problems import Problem

Piece = TypeVar("Piece", bytes, memoryview)

Tell = Callable[[str], object]
"""Takes one sentence about how a call goes."""


def ignore_sentence(_sentence: str) -> None:
    """Do nothing with a sentence."""


@dataclass(frozen=True, slots=True)
class ProgramMessages:
    """Messages of a submission, as sentences for a function of the program."""

    tell: Tell

    def say(self, *messages: str) -> None:
        for message in filter(None, messages):
            self.tell(message)

    def warn(self, message: str) -> None:
        self.tell(f"warning: {message}")

    def print_notes(self, notes: Iterable[str]) -> None:
        for note in notes:
            self.tell(f"note: {note}")

    def print_problems(self, problems: Sequence[Problem], name: str, source: str) -> None:
        """Tell warnings: errors are in the `SpecError` that follows."""
        del name, source  # each problem says where it is
        for problem in problems:
            if problem.severity.value == "warning":
                self.tell(str(problem))

    def begin_line(self, text: str) -> None:
        self.tell(text)

    def print_lines(self, lines: Sequence[str]) -> None:
        del lines  # the end of what `begin_line` has told

    def find_files(self) -> frozenset[tuple[int, int]]:
        return frozenset()  # the program's own streams may go anywhere, and it names the files of its project

    def show_sync(self, pieces: Iterator[Piece], size: int) -> Generator[Piece, None, None]:
        sent = 0
        for piece in pieces:
            yield piece
            sent = min(size, sent + len(piece))
            self.tell(f"Sent {sent:,} of {size:,} bytes.")


@dataclass(frozen=True, slots=True)
class Program:
    """The calling program: its environment, its working directory, and who hears how a call goes.

    Example:
        with Program().connect() as client:
            client.get_server()
    """

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path = field(default_factory=Path.cwd)
    tell: Tell = ignore_sentence
    asks: bool = False  # a program answers no question: what it allows it says with the call

    @property
    def messages(self) -> ProgramMessages:
        return ProgramMessages(self.tell)

    @property
    def wait(self) -> Callable[[float], object]:
        return threading.Event().wait

    def settings(self) -> Settings:
        return read_settings(self.environ)

    def ask(self, question: str, *, default: bool = False) -> bool:
        del question
        return default

    @contextmanager
    def connect(self) -> Iterator[Client]:
        """Give a client of the server of this user, which is started when it does not run. Errors get their hints."""
        from riseml.submission.local_server import connect_client

        with add_hints(), connect_client(self.settings(), self.environ, self.messages) as client:
            yield client
