"""The audit log of a team's server: a file to which each write and each refusal adds a line before it takes effect.

A line is an object of JSON. Its `hash` is SHA-256 over the hash of the line before and the line itself without `hash`:
a line that is changed, removed or put in between breaks the chain from there on, and `verify_file` says where. The end
of the file alone can be cut off without a break; so an administrator keeps the number and the hash of the last line
elsewhere, and gives them to `verify_file` later.

A line that was torn by a crash is removed by the next server: nothing took effect for it, because what it announces
waits until it is on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from riseml.base.errors import StoreError, advise_on_write
from riseml.base.records import dataclass

_FIRST_HASH = "0" * 64  # what the first line has as the hash of the line before
_BLOCK = 1 << 16  # bytes that are read at a time, from the end
_LONGEST_TEXT = 500  # characters of one field
_MOST_LATE = 10_000  # lines that wait until the file can be written

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What a line says."""

    at: datetime
    user: str  # name of the caller; empty: the server does not know who called
    key: str  # id of the key or session; empty: the unix socket
    address: str  # of the client; empty: the unix socket
    request: str  # `POST /v1/experiments/4/kill`
    result: str  # `begun` before a write; `done 200`, `refused 403` or `failed 500` when it was answered
    of: int | None = None  # number of the line `begun` which this line completes


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A line of the file."""

    number: int  # counts from 1
    entry: AuditEntry
    hash: str


@dataclass(frozen=True, slots=True)
class AuditHead:
    """The last line of a file, which an administrator keeps elsewhere."""

    number: int = 0
    hash: str = _FIRST_HASH


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """Whether a file is what the server wrote."""

    head: AuditHead  # the last line that is right
    problem: str  # where the chain breaks, as a sentence without its point; empty: nowhere


class AuditLog:
    """Appends to the file, and reads it. Several threads use it at the same time; one server writes at a time.

    Args:
        path: of the file. It is made, for its user alone, with the first line.
        check_claim: raises a StoreError while another server may write.

    Raises:
        StoreError: the file cannot be read, or its last line is not one of an audit log.
    """

    def __init__(self, path: Path, check_claim: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._check_claim = check_claim
        self._lock = threading.Lock()
        self._late: deque[AuditEntry] = deque()  # lines of `append_late` that wait
        self._file = _open_file(path)
        self._head, self._size = _find_end(self._file, path)

    def append(self, entry: AuditEntry) -> int:
        """Add a line, and return its number; the line is on the disk.

        Raises:
            StoreError: it cannot be written, and nothing may take effect.
        """
        with self._lock:
            while self._late:
                self._write(self._late[0])
                self._late.popleft()
            return self._write(entry)

    def append_late(self, entry: AuditEntry) -> int | None:
        """Add a line about what happens in any case, now or as soon as it can be written: a full disk must not keep a
        user from ending what fills it, and what was done has a result.

        Returns:
            The number of the line; None: it waits.
        """
        try:
            return self.append(entry)
        except StoreError as error:
            log.warning("%r of %s is not in the audit log yet: %s", entry.result, entry.request, error.message)
        with self._lock:
            if len(self._late) < _MOST_LATE:
                self._late.append(entry)
        return None

    def read_newest(self) -> Iterator[AuditLine]:
        """Yield the lines that are there now, the newest first."""
        with self._lock:
            size = self._size
        for line in _read_backwards(self._file, size):
            yield _parse_line(line, self._path)

    def verify(self, kept_head: AuditHead | None = None) -> AuditCheck:
        """Return whether the file is what this server and those before it wrote.

        Args:
            kept_head: a line that was the last one, from elsewhere.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._lock:
            head = self._head
        return verify_file(self._path, [head] if kept_head is None else [kept_head, head])

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, entry: AuditEntry) -> int:
        """Write one line after the last one. The caller has the lock.

        Raises:
            StoreError: it cannot be written; the file is what it was.
        """
        self._check_claim()
        line, head = _pack_line(entry, self._head)
        try:
            self._check_place()
            try:
                if os.write(self._file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fdatasync(self._file)
            except OSError:
                os.ftruncate(self._file, self._size)
                raise
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(
                f"{self._path} cannot be written: {reason}, and without a line there nothing is changed",
                advise_on_write(error),
            ) from error
        self._head = head
        self._size += len(line)
        return head.number

    def _check_place(self) -> None:
        """Refuse to write where the path leads to another file, or another server has written.

        Raises:
            OSError: it does, or has.
        """
        status = os.fstat(self._file)
        if not os.path.samestat(status, os.lstat(self._path)):
            raise OSError("it was replaced by another file")
        if status.st_size != self._size:
            raise OSError("something else has written there")


def verify_file(path: Path, kept_heads: Sequence[AuditHead] = ()) -> AuditCheck:
    """Return whether a file is a whole chain, and has lines that were the last one once.

    Args:
        path: of the file.
        kept_heads: numbers and hashes of lines, from elsewhere.

    Raises:
        StoreError: the file cannot be read.
    """
    head = AuditHead()
    missing = {line.number: line.hash for line in kept_heads if line.number}
    try:
        with path.open("rb") as file:
            for place, line in enumerate(file, 1):
                problem, head = _check_line(line, place, head)
                if not problem and missing.pop(head.number, head.hash) != head.hash:
                    problem = f"line {place} has another hash than the one that was kept"
                if problem:
                    return AuditCheck(head, problem)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", "the server's user may read it") from error
    if missing:
        return AuditCheck(head, f"the file ends after line {head.number}, and line {max(missing)} was written")
    return AuditCheck(head, "")


def _check_line(line: bytes, place: int, before: AuditHead) -> tuple[str, AuditHead]:
    """Return what is wrong with a line, empty for nothing, and the last line that is right."""
    if not line.endswith(b"\n"):
        return f"line {place} has no end", before
    try:
        fields = json.loads(line)
        digest = fields.pop("hash")
        number = fields["n"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"line {place} is not a line of an audit log", before
    if number != before.number + 1:
        return f"line {place} has the number {number!r} after {before.number}", before
    if digest != _hash_fields(fields, before.hash) or line != _show_fields({**fields, "hash": digest}):
        return f"line {place} was changed, or the line before it", before
    return "", AuditHead(number, digest)


def _open_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be opened: {error.strerror}", "name a file of the server's user at `audit` in server.yml"
        ) from error


def _find_end(file: int, path: Path) -> tuple[AuditHead, int]:
    """Return the last line and the size of the file, from which a torn line was removed.

    Raises:
        StoreError: the last line is not one of an audit log.
    """
    size = os.fstat(file).st_size
    whole = _find_line_end(file, size)
    if whole < size:
        os.ftruncate(file, whole)
        log.warning("%s ended with a torn line of %d bytes, whose request was not carried out", path, size - whole)
    last = next(_read_backwards(file, whole), None)
    if last is None:
        return AuditHead(), whole
    line = _parse_line(last, path)
    return AuditHead(line.number, line.hash), whole


def _find_line_end(file: int, size: int) -> int:
    """Return the place behind the last line end before `size`; 0: there is none."""
    end = size
    while end > 0:
        begin = max(0, end - _BLOCK)
        at = os.pread(file, end - begin, begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def _read_backwards(file: int, size: int) -> Iterator[bytes]:
    """Yield the lines before `size`, where a line ends, the last one first."""
    torn = b""
    end = size
    while end > 0:
        begin = max(0, end - _BLOCK)
        lines = (os.pread(file, end - begin, begin) + torn).split(b"\n")
        torn = lines[0]
        yield from (line for line in reversed(lines[1:]) if line)
        end = begin
    if torn:
        yield torn


def _parse_line(line: bytes, path: Path) -> AuditLine:
    try:
        fields = json.loads(line)
        entry = AuditEntry(
            at=datetime.fromisoformat(fields["at"]),
            user=fields["user"],
            key=fields["key"],
            address=fields["address"],
            request=fields["request"],
            result=fields["result"],
            of=fields.get("of"),
        )
        return AuditLine(int(fields["n"]), entry, str(fields["hash"]))
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} has a line that is not one of an audit log",
            "`riseml audit verify` says which; move the file elsewhere, and the server begins another",
        ) from error


def _pack_line(entry: AuditEntry, before: AuditHead) -> tuple[bytes, AuditHead]:
    """Return a line and what it makes the head."""
    fields: dict[str, object] = {
        "n": before.number + 1,
        "at": entry.at.isoformat(timespec="milliseconds"),
        "user": entry.user[:_LONGEST_TEXT],
        "key": entry.key[:_LONGEST_TEXT],
        "address": entry.address[:_LONGEST_TEXT],
        "request": entry.request[:_LONGEST_TEXT],
        "result": entry.result[:_LONGEST_TEXT],
    }
    if entry.of is not None:
        fields["of"] = entry.of
    digest = _hash_fields(fields, before.hash)
    return _show_fields({**fields, "hash": digest}), AuditHead(before.number + 1, digest)


def _hash_fields(fields: dict[str, object], before: str) -> str:
    return hashlib.sha256(before.encode("ascii", "replace") + _show_fields(fields)).hexdigest()


def _show_fields(fields: dict[str, object]) -> bytes:
    """Return a line of ASCII: control characters and the rest of Unicode are escaped."""
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"
