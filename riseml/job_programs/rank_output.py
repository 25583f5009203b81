"""The output of several processes in one stream: a part of `rank_launcher`."""

from __future__ import annotations

import os
import re
import select
import threading
from typing import BinaryIO

LONGEST_PIECE = 1 << 20  # bytes of an incomplete line that are held back
HOLD_TIME = 1.0  # seconds for which the beginning of a line is held back
PIECE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


class SharedOutput:
    """Stdout or stderr of the job. Each line begins with the rank of its process, and lines are never mixed."""

    def __init__(self, target: BinaryIO) -> None:
        self.target = target
        self.lock = threading.Lock()
        self.writer = b""  # the mark of the one whose line has not ended
        self.last = b"\n"  # the last byte of it

    def write(self, mark: bytes, pieces: list[bytes]) -> None:
        """Write pieces of output. When a progress bar returns to the beginning of its line, the mark is written
        again."""
        with self.lock:
            for piece in pieces:
                goes_on = self.writer == mark and (self.last != b"\r" or piece == b"\n")
                end = b"\n" if self.writer not in (b"", mark) else b""
                self.target.write(end + (b"" if goes_on else mark) + piece)
                self.last = piece[-1:]
                self.writer = b"" if self.last == b"\n" else mark
            self.target.flush()

    def end(self, mark: bytes) -> None:
        """End the line of a process whose output has ended."""
        with self.lock:
            if self.writer == mark:
                self.target.write(b"\n")
                self.target.flush()
                self.writer = b""


def copy_output(source: BinaryIO, output: SharedOutput, rank: int) -> None:
    """Copy the output of a process in pieces that end with a line end or with a carriage return. An incomplete piece is
    written when nothing follows for a while: it may be a prompt or a counter.
    """
    mark, held, reader = b"[%d] " % rank, b"", select.poll()
    reader.register(source, select.POLLIN)
    while True:
        if held and (len(held) >= LONGEST_PIECE or not reader.poll(HOLD_TIME * 1000)):
            output.write(mark, [held])
            held = b""
        data = os.read(source.fileno(), 1 << 16)
        if not data:
            break
        pieces: list[bytes] = PIECE.findall(held + data)
        held = b"" if pieces[-1].endswith((b"\r", b"\n")) else pieces.pop()
        output.write(mark, pieces)
    if held:
        output.write(mark, [held])
    output.end(mark)
