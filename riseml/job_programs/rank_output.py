"""The output of several processes in one stream: a part of `rank_launcher`."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from typing import BinaryIO

LONGEST_PIECE = 1 << 20  # bytes of an incomplete line that are held back
HOLD_TIME = 1.0  # seconds for which the beginning of a line is held back
PIECE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


class CombinedOutput:
    """Stdout or stderr of the job. Each line begins with the rank of its process, and lines are never mixed."""

    def __init__(self, target: BinaryIO) -> None:
        self.target = target
        self.lock = threading.Lock()
        self.writer = b""  # the mark of the one whose line has not ended
        self.last = b"\n"  # the last byte written

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


def copy_output(source: BinaryIO, output: CombinedOutput, rank: int) -> None:
    """Copy the output of a process in pieces that end with a line end or with a carriage return. An incomplete piece is
    written `HOLD_TIME` after its first byte, whatever follows: it may be a prompt, a counter or a row of dots.
    """
    mark = b"[%d] " % rank
    buffered = bytearray()
    began = 0.0
    reader = select.poll()
    reader.register(source, select.POLLIN)
    while True:
        left = began + HOLD_TIME - time.monotonic() if buffered else 0.0
        if buffered and (len(buffered) >= LONGEST_PIECE or left <= 0 or not reader.poll(left * 1000)):
            output.write(mark, [bytes(buffered)])
            buffered.clear()
        data = os.read(source.fileno(), 1 << 16)
        if not data:
            break
        *ended, tail = PIECE.findall(data)  # searches the new bytes alone: what is buffered has no line end
        if tail.endswith((b"\r", b"\n")):
            ended.append(tail)
            tail = b""
        if ended:
            ended[0] = bytes(buffered) + ended[0]
            output.write(mark, ended)
            buffered.clear()
        began = began if buffered else time.monotonic()
        buffered += tail
    if buffered:
        output.write(mark, [bytes(buffered)])
    output.end(mark)
