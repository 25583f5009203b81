"""The output of a role as its wrapper writes it: records of `HEADER` and that many bytes.

Python 3.6 or newer, standard library only.
"""

import os
import struct
import time

HEADER = struct.Struct(">QBI")  # nanoseconds since the epoch, stream, bytes that follow
OWN = 3  # the stream of notes that are not the command's
LONGEST_LOG = 1 << 32  # bytes; more than the server keeps of a job


class RoleLog:
    """The output of the role. A full disk loses output, and never ends the role."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._end = os.fstat(self._file).st_size
        self._last = 0  # nanoseconds of the last record; times never go back
        self._lost = 0  # bytes of output since the disk is full

    def write(self, stream: int, data: bytes) -> None:
        """Append one record, after a note about the output that was lost before it."""
        if self._end > LONGEST_LOG:
            return
        self._last = max(self._last, int(time.time() * 1e9))
        note = b"[riseml: %d bytes of output are lost, the disk was full]\n" % self._lost if self._lost else b""
        record = (self._pack(OWN, note) if note else b"") + self._pack(stream, data)
        try:
            view = memoryview(record)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            self._cut()
            self._lost += len(data)
        else:
            self._end += len(record)
            self._lost = 0

    def _cut(self) -> None:
        """Remove the part of a record that was written."""
        try:
            os.ftruncate(self._file, self._end)
        except OSError:
            self._end = LONGEST_LOG + 1  # its records could not be read any more

    def _pack(self, stream: int, data: bytes) -> bytes:
        return HEADER.pack(self._last, stream, len(data)) + data
