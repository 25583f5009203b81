"""Logs: one append-only file an experiment, every job's frames in the order of their arrival.

A record is one line, `<timestamp> <kind> <job> <attempt> <data>\\n`, where `kind` is 1, 2 or 3 for stdout, stderr and
the engine, or a, b, c when the frame's own line goes on in the next frame. The file is its own cursor: after a crash a
torn last record is cut off, and the last timestamp of a job with the number of frames that carry it says where to read
on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from riseml.model import Frame, JobKey, LogCursor
from riseml.names import JobName

_WHOLE, _PART = b"0123", b"0abc"
_CHUNK = 1 << 22  # more than the longest line, so that every call makes progress
_NEAR = 1 << 20  # bytes before the end in which the last lines are looked for
LONGEST_LINE = 1 << 20  # bytes; what is longer is cut, with a mark
_MARK = b" [riseml: line cut at 1 MiB]"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a job's output; who reads on from the offset `end` loses nothing."""

    job: JobName
    at: str
    stream: int
    text: bytes
    end: int


class Logs:
    """The logs below one folder. Appending is safe from many threads; a reader needs nothing but the file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._files: dict[int, _File] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def append(self, key: JobKey, frames: Iterable[Frame]) -> None:
        """Write frames behind what is there, as one piece."""
        self._open(key.experiment).append(key, list(frames))

    def finish(self, key: JobKey) -> None:
        """End a line that its job left unfinished for ever."""
        file = self._open(key.experiment)
        stream = file.unfinished.get((key.job, key.attempt))
        if stream is not None:
            file.append(key, [Frame("", stream, b"\n")])

    def cursor(self, key: JobKey) -> LogCursor:
        """Where to read the job's log on."""
        return self._open(key.experiment).cursors.get((key.job, key.attempt), LogCursor())

    def size(self, experiment: int) -> int:
        """The offset behind the last record."""
        path = self._path(experiment)
        return path.stat().st_size if path.exists() else 0

    def read(self, experiment: int, offset: int, limit: int = _CHUNK) -> tuple[list[Line], int]:
        """The complete lines in about `limit` bytes behind `offset`, and the offset to go on from.

        A line whose last record has not been written yet is left for the next call.
        """
        path = self._path(experiment)
        if not path.exists():
            return [], offset
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(limit)
            if data and b"\n" not in data:
                data += file.readline()
        return _lines(data[: data.rfind(b"\n") + 1], offset)

    def last(self, experiment: int, job: JobName, count: int) -> list[Line]:
        """The last lines of one job, as far as they are near the end of the log."""
        start = max(0, self.size(experiment) - _NEAR)
        path = self._path(experiment)
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(start)
            torn = len(file.readline()) if start else 0
        lines, _ = self.read(experiment, start + torn)
        return [line for line in lines if line.job == job][-count:]

    def close(self, experiment: int) -> None:
        """Forget an experiment whose log is complete."""
        with self._guard:
            file = self._files.pop(experiment, None)
        if file is not None:
            file.close()

    def _open(self, experiment: int) -> _File:
        with self._guard:
            if experiment not in self._files:
                self._files[experiment] = _File(self._path(experiment))
            return self._files[experiment]

    def _path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.log"


class _File:
    """One open log with the cursor of each of its jobs."""

    def __init__(self, path: Path) -> None:
        self.cursors: dict[tuple[JobName, int], LogCursor] = {}
        self.unfinished: dict[tuple[JobName, int], int] = {}
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._recover(path)

    def append(self, key: JobKey, frames: list[Frame]) -> None:
        head = f"{key.job} {key.attempt} ".encode()
        view = memoryview(b"".join(_record(frame, head) for frame in frames))
        with self._lock:
            while view:
                view = view[os.write(self._file, view) :]
            for frame in frames:
                self._note((key.job, key.attempt), frame.at, frame.stream, whole=frame.data.endswith(b"\n"))

    def close(self) -> None:
        with self._lock:
            os.close(self._file)

    def _recover(self, path: Path) -> None:
        """Cut a torn record off and find every cursor again."""
        whole = 0
        with path.open("rb") as file:
            for record in file:
                if record.endswith(b"\n"):
                    whole += len(record)
                    at, kind, job, attempt, _ = record.split(b" ", 4)
                    owner = (JobName(job.decode()), int(attempt))
                    stamp = "" if at == b"-" else at.decode()
                    self._note(owner, stamp, _stream(kind), whole=kind in _WHOLE)
        os.ftruncate(self._file, whole)

    def _note(self, owner: tuple[JobName, int], at: str, stream: int, *, whole: bool) -> None:
        if whole:
            self.unfinished.pop(owner, None)
        else:
            self.unfinished[owner] = stream
        if at:
            known = self.cursors.get(owner)
            seen = known.seen + 1 if known is not None and known.at == at else 1
            self.cursors[owner] = LogCursor(at, seen)


def _record(frame: Frame, head: bytes) -> bytes:
    """A frame as one line. A carriage return stays; the engine splits at newlines, so that none is left inside."""
    whole = frame.data.endswith(b"\n")
    kind = (_WHOLE if whole else _PART)[frame.stream : frame.stream + 1]
    data = frame.data[:-1] if whole else frame.data
    return b"".join(((frame.at or "-").encode(), b" ", kind, b" ", head, data.replace(b"\n", b" "), b"\n"))


@dataclass(slots=True)
class _Part:
    """A line whose last record has not come yet: where it begins, its first timestamp, its pieces."""

    start: int
    at: bytes
    pieces: list[bytes]


def _lines(data: bytes, offset: int) -> tuple[list[Line], int]:
    found: list[Line] = []
    ends: list[int] = []
    parts: dict[tuple[bytes, int], _Part] = {}
    position = offset
    for record in data.split(b"\n")[:-1]:
        start, position = position, position + len(record) + 1
        at, kind, job, _, text = record.split(b" ", 4)
        if not parts and kind in _WHOLE:  # nearly always
            found.append(Line(JobName(job.decode()), at.decode(), _WHOLE.index(kind), text, position))
            ends.append(position)
            continue
        owner = (job, _stream(kind))
        part = parts.setdefault(owner, _Part(start, at, []))
        part.pieces.append(text)
        if kind in _WHOLE:
            del parts[owner]
            found.append(_line(owner, part, _safe(parts, position)))
            ends.append(position)
    if parts and _safe(parts, position) <= position - LONGEST_LINE:  # one that never ends must not hold up the others
        found += [_line(owner, part, position) for owner, part in parts.items()]
        return found, position
    safe = _safe(parts, position)
    return [line for line, behind in zip(found, ends, strict=True) if behind <= safe], safe


def _safe(parts: dict[tuple[bytes, int], _Part], position: int) -> int:
    """Where to read on so that no piece of an unfinished line is lost."""
    return min((part.start for part in parts.values()), default=position)


def _line(owner: tuple[bytes, int], part: _Part, end: int) -> Line:
    return Line(JobName(owner[0].decode()), part.at.decode(), owner[1], _joined(part.pieces), end)


def _stream(kind: bytes) -> int:
    return max(_WHOLE.find(kind), _PART.find(kind))


def _joined(parts: list[bytes]) -> bytes:
    text = b"".join(parts)
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + _MARK


def read_all(logs: Logs, experiment: int) -> Iterator[Line]:
    """Every complete line of a log."""
    offset = 0
    while True:
        lines, end = logs.read(experiment, offset)
        yield from lines
        if end == offset:
            return
        offset = end
