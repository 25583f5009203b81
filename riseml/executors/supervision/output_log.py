"""The output of a job as its supervisor on this machine, or its wrapper on a node, writes it: records of `HEADER` and
that many bytes.

The format is a contract: a server reads the logs of supervisors that an older version of riseml started. Python 3.6 or
newer, standard library only: nodes do not have riseml.
"""

import fcntl
import os
import struct
import time

HEADER = struct.Struct(">QBI")  # nanoseconds since the epoch, stream, bytes that follow
STDOUT = 1  # numbers of streams
STDERR = 2
OWN = 3  # notes that are not the command's
LONGEST_LOG = 1 << 32  # bytes; more than the server keeps of a job
READ_SIZE = 1 << 16  # bytes of output read at once
_LARGEST_PIPE = 1 << 20  # the most bytes in a stream of unknown size, such as a terminal
_GETPIPE_SZ = 1032  # command of fcntl(2); Python has its name since 3.10


def count_last_reads(descriptor: int, size: int) -> int:
    """Return how many reads of `size` bytes empty a stream as it is now.

    A process that cannot be killed may print on as fast as its output is read: a setuid program of another user.
    """
    try:
        most = fcntl.fcntl(descriptor, _GETPIPE_SZ)
    except OSError:
        most = _LARGEST_PIPE
    return most // size + 1


class OutputLog:
    """The output of one job, each piece with the time when it was read.

    A full disk loses output, and never ends the job. Output beyond `LONGEST_LOG` is not kept.

    Args:
        path: of the file; it is created for this user alone, or continued.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        status = os.fstat(self._file)
        self._end = status.st_size  # bytes of whole records
        # nanoseconds of the last record; times never go back, also when the clock did while the log had no writer
        self._last = status.st_mtime_ns if status.st_size else 0
        self._lost = 0  # bytes of output that were lost since the disk became full

    def write_output(self, stream: int, data: bytes) -> None:
        """Append one record; before it, append a note about lost output, if there is any."""
        self._last = max(self._last, int(time.time() * 1e9))
        if not self._append(self._pack_note() + self._pack(stream, data)):
            self._lost += len(data)

    def note_loss(self) -> None:
        """Append the note about output that was lost, if there is any: no more output comes."""
        if self._lost:
            self._append(self._pack_note())

    def _append(self, record: bytes) -> bool:
        """Append records; False when the disk is full. Append nothing to a log that is too long."""
        if self._end > LONGEST_LOG:
            return True
        try:
            view = memoryview(record)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            self._cut()
            return False
        self._end += len(record)
        self._lost = 0
        return True

    def _pack_note(self) -> bytes:
        note = b"[riseml: %d bytes of output are lost, the disk was full]\n" % self._lost
        return self._pack(OWN, note) if self._lost else b""

    def _cut(self) -> None:
        """Truncate a record that was written only in part."""
        try:
            os.ftruncate(self._file, self._end)
        except OSError:
            self._end = LONGEST_LOG + 1  # its records could not be read any more

    def _pack(self, stream: int, data: bytes) -> bytes:
        return HEADER.pack(self._last, stream, len(data)) + data
