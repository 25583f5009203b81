"""A command on a terminal of its own, with an answer to its questions."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def _read_to_end(terminal: int) -> bytes:
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # EIO: the last process that had the terminal has ended
            return b"".join(pieces)
        pieces.append(piece)
