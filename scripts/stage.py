"""A stage on which users type commands: each is shown as typed and with its answer, and checked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from riseml.base.records import dataclass
from tests.support.waiting import wait_for

_BOLD = "\x1b[1m"
_DIM = "\x1b[2m"
_PLAIN = "\x1b[0m"


class NotAsSaidError(Exception):
    """A command has answered otherwise than the demo says."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at a terminal of their own."""

    name: str
    folder: Path  # the working folder of the terminal
    environ: Mapping[str, str]


class Stage:
    """Runs commands of several people, and writes what a watcher sees.

    Args:
        output: gets all that is shown.
        limit: seconds that a command may take.
    """

    def __init__(self, output: TextIO, limit: float) -> None:
        self._output = output
        self._limit = limit
        self._colour = output.isatty()

    def say(self, title: str, text: str) -> None:
        """Show what comes next, and why."""
        self._write(f"\n{self._paint(_BOLD, title)}\n{self._paint(_DIM, text)}\n\n")

    def type_line(self, person: Person, line: str, *expected: str, code: int = 0, absent: tuple[str, ...] = ()) -> str:
        """Run a line of shell as a person, and show it with its answer.

        Args:
            person: who types.
            line: what they type.
            expected: patterns that the answer has.
            code: the exit code that the line has.
            absent: texts that the answer does not have.

        Returns:
            The answer: both outputs as they come.

        Raises:
            NotAsSaidError: the exit code is another one, or a text is missing or too much.
        """
        self._show(person, line, "")
        answer, ended = self._run(person, line)
        missing = [pattern for pattern in expected if re.search(pattern, answer, re.MULTILINE) is None]
        if ended != code:
            raise NotAsSaidError(f"`{line}` of {person.name} ended with {ended}, not with {code}")
        if missing:
            raise NotAsSaidError(f"the answer to `{line}` of {person.name} has no {missing[0]!r}")
        if any(text in answer for text in absent):
            raise NotAsSaidError(f"the answer to `{line}` of {person.name} has what nobody may see")
        return answer

    def await_line(self, person: Person, line: str, expected: str) -> str:
        """Run a line until its answer has a pattern, and show it then, once.

        Raises:
            NotAsSaidError: the pattern does not come in time.
        """
        latest: list[str] = []

        def look() -> str | None:
            answer, _ = self._run(person, line, quiet=True)
            latest[:] = [answer]
            return answer if re.search(expected, answer, re.MULTILINE) else None

        try:
            answer = wait_for(f"{line} says {expected!r}", look, self._limit)
        except AssertionError:
            self._show(person, line, "".join(latest))
            raise NotAsSaidError(f"the answer to `{line}` of {person.name} gets no {expected!r}") from None
        self._show(person, line, answer)
        return answer

    def note(self, text: str) -> None:
        """Show a sentence about what was checked beside the commands."""
        self._write(f"{self._paint(_DIM, text)}\n")

    def _show(self, person: Person, line: str, answer: str) -> None:
        self._write(f"{self._paint(_BOLD, f'{person.name}$')} {line}\n{answer}")

    def _run(self, person: Person, line: str, *, quiet: bool = False) -> tuple[str, int]:
        lines: list[str] = []
        words = ["timeout", str(self._limit), "bash", "-c", line]
        with subprocess.Popen(
            words,
            cwd=person.folder,
            env=dict(person.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None, "the output is a pipe"
            for text in process.stdout:
                lines.append(text)
                if not quiet:
                    self._write(text)
        return "".join(lines), process.returncode

    def _paint(self, style: str, text: str) -> str:
        return f"{style}{text}{_PLAIN}" if self._colour else text

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()


def find_commands() -> str:
    """Return a PATH on which `riseml` is the one of this Python."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
