"""A command on a terminal of its own, with an answer to its questions."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.support.screen import Screen
from tests.support.waiting import DEADLINE


def run_on_terminal(
    command: Sequence[str], where: Path, environ: Mapping[str, str], answer: str = ""
) -> tuple[int, bytes]:
    """Run a command whose three streams are one terminal; return its exit code and all that the terminal got.

    Args:
        command: program and arguments.
        where: its working directory.
        environ: its whole environment.
        answer: what the user types.
    """
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        with subprocess.Popen(
            command, cwd=where, env=dict(environ), stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            shown = _read_to_end(ours)
            return process.wait(DEADLINE), shown
    finally:
        os.close(ours)


class Terminal:
    """A command on a terminal of a size, whose screen a test sees and whose keys it presses.

    Args:
        terminal: descriptor of the terminal's own side.
        process: the command.
        screen: shows what the terminal got.
    """

    def __init__(self, terminal: int, process: subprocess.Popen[bytes], screen: Screen) -> None:
        self.process = process
        self.screen = screen
        self.raw = ""  # all that the terminal got
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def wait_for(self, what: str, look: Callable[[Screen], object]) -> None:
        """Read what the command writes until `look` is true of the screen."""
        end = time.monotonic() + DEADLINE
        while not look(self.screen):
            assert time.monotonic() < end, f"not within {DEADLINE:.0f} s: {what}: {self.screen.lines()}"
            assert self._read(end - time.monotonic()), f"the command ended before: {what}: {self.screen.lines()}"

    def press(self, keys: str) -> None:
        """Type; `\\x03` is Ctrl-C."""
        os.write(self._terminal, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; its screen is a new one, because what it did to the old lines is unknown."""
        self.screen = Screen(columns, rows)
        set_size(self._terminal, columns, rows)

    def finish(self) -> int:
        """Read to the end of the command, and return its exit code."""
        end = time.monotonic() + DEADLINE
        while self._read(end - time.monotonic()):
            assert time.monotonic() < end, f"it has not ended within {DEADLINE:.0f} s: {self.screen.lines()}"
        return self.process.wait(DEADLINE)

    def _read(self, seconds: float) -> bool:
        """Read what there is within some seconds; return False at the end."""
        if not _await_output(self._terminal, seconds):
            return True
        try:
            text = self._decoder.decode(os.read(self._terminal, 65536))
        except OSError:  # EIO: the last process that had the terminal has ended
            return False
        self.raw += text
        self.screen.feed(text)
        return True


@contextmanager
def open_terminal(
    command: Sequence[str], where: Path, environ: Mapping[str, str], size: tuple[int, int]
) -> Iterator[Terminal]:
    """Run a command on a terminal of its own, which Ctrl-C reaches; kill it at the end of the block.

    Args:
        command: program and arguments.
        where: its working directory.
        environ: its whole environment.
        size: columns and rows.
    """
    ours, theirs = pty.openpty()
    set_size(theirs, *size)
    kept = {name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES")}
    take = ["setsid", "--ctty", "--wait", *command]
    with subprocess.Popen(take, cwd=where, env=kept, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        try:
            yield Terminal(ours, process, Screen(*size))
        finally:
            os.close(ours)
            process.kill()
            process.wait(DEADLINE)


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Give a terminal a size; the command that has it gets SIGWINCH."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _await_output(terminal: int, seconds: float) -> bool:
    """Return True when there is something to read within some seconds.

    `select` takes no descriptor above 1,023, which a process of many tests may have.
    """
    poll = select.poll()
    poll.register(terminal, select.POLLIN)
    return bool(poll.poll(max(0, round(seconds * 1000))))


def _read_to_end(terminal: int) -> bytes:
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # EIO: the last process that had the terminal has ended
            return b"".join(pieces)
        pieces.append(piece)


class TerminalSession:
    """A command on a terminal of its own, which a test reads and types into while it runs."""

    def __init__(
        self, command: Sequence[str], where: Path, environ: Mapping[str, str], rows: int, columns: int
    ) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(rows, columns)
        self.shown = b""
        self.process = subprocess.Popen(
            command,
            cwd=where,
            env={**environ, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        if self._ours >= 0:
            os.close(self._ours)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size; the kernel tells the command."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type some keys."""
        os.write(self._ours, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until the terminal has shown this text, from the last text that was waited for on."""
        end = time.monotonic() + DEADLINE
        wanted = text.encode()
        while wanted not in self.shown:
            assert _await_output(self._ours, end - time.monotonic()), f"{text!r} was not shown: {self.shown!r}"
            try:
                self.shown += os.read(self._ours, 65536)
            except OSError:  # EIO: the last process that had the terminal has ended
                raise AssertionError(f"{text!r} was not shown before the end: {self.shown!r}") from None
        self.shown = self.shown.partition(wanted)[2]

    def finish(self) -> int:
        """Read to the end, and return the exit code."""
        self.shown += _read_to_end(self._ours)
        return self.process.wait(DEADLINE)

    def hang_up(self) -> None:
        """Let the terminal go away, as a closed window does."""
        os.close(self._ours)
        self._ours = -1


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
