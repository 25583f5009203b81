"""The user on whose behalf something is submitted, as values: a command on a terminal, or a program in Python."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from riseml.base.settings import Settings
    from riseml.spec.yaml.problems import Problem

Piece = TypeVar("Piece", bytes, memoryview)


class Messages(Protocol):
    """What tells the user how a submission goes."""

    def say(self, *messages: str) -> None:
        """Tell messages that are not part of a result."""

    def warn(self, message: str) -> None:
        """Tell what the user should change."""

    def print_notes(self, notes: Iterable[str]) -> None:
        """Tell remarks that need no action."""

    def print_problems(self, problems: Sequence[Problem], name: str, source: str) -> None:
        """Tell problems of the file `name`, whose text is `source`."""

    def begin_line(self, text: str) -> None:
        """Tell what begins now, and takes a while; `print_lines` completes it."""

    def print_lines(self, lines: Sequence[str]) -> None:
        """Tell lines of the result."""

    def find_files(self) -> frozenset[tuple[int, int]]:
        """Return device and inode number of each file that the messages are written to: it belongs to no project."""

    def show_sync(self, pieces: Iterator[Piece], size: int) -> Generator[Piece, None, None]:
        """Yield what is sent, piece by piece, and tell how much of it is sent.

        Args:
            pieces: contents of files, with their sizes before them.
            size: bytes of all files; the pieces have a few more, or fewer when several files have one content.
        """


class Submitter(Protocol):
    """The user on whose behalf something is submitted."""

    @property
    def messages(self) -> Messages:
        """What tells the user how it goes."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables of the user's environment."""

    @property
    def folder(self) -> Path:
        """The working directory."""

    @property
    def asks(self) -> bool:
        """True when the user can answer questions."""

    @property
    def wait(self) -> Callable[[float], object]:
        """Wait for so many seconds."""

    def settings(self) -> Settings:
        """Return the settings of this user."""

    def ask(self, question: str, *, default: bool = False) -> bool:
        """Return whether the user says yes; called only where `asks` is true."""
