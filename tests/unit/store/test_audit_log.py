"""The audit log: a chain of lines, each on the disk before what it announces; any other change of the file shows."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riseml.base.errors import StoreError
from riseml.store.audit_log import AuditEntry, AuditHead, AuditLog, verify_file

AT = datetime(2026, 11, 28, 12, 0, 0, 1000, UTC)
COUNT = 6  # lines of the file that the tests change


def make_entry(
    request: str = "POST /v1/experiments/4/kill", result: str = "begun", of: int | None = None
) -> AuditEntry:
    return AuditEntry(AT, "paul", "k1", "127.0.0.1", request, result, of)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def audit(path: Path) -> Iterator[AuditLog]:
    opened = AuditLog(path)
    yield opened
    opened.close()


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size`, in bytes."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


def test_lines_come_back_with_their_numbers_the_newest_first(audit: AuditLog, path: Path) -> None:
    entries = [make_entry(f"POST /v1/experiments/{number}/kill") for number in range(1, 1001)]
    assert [audit.append(entry) for entry in entries] == list(range(1, 1001))
    lines = list(audit.read_newest())
    assert [line.entry for line in reversed(lines)] == entries
    assert [line.number for line in lines] == list(range(1000, 0, -1))
    assert audit.verify().problem == ""
    assert audit.verify().head == AuditHead(1000, lines[0].hash)
    assert audit.verify(AuditHead(500, lines[500].hash)).problem == ""
    assert "line 500 has another hash" in audit.verify(AuditHead(500, lines[0].hash)).problem
    assert (
        audit.verify(AuditHead(1001, lines[0].hash)).problem
        == "the file ends after line 1000, and line 1001 was written"
    )
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("torn", [b"", b'{"n":3,"at":"2026', b"\0" * 70_000], ids=["nothing", "a part", "zeros"])
def test_the_next_server_goes_on_after_the_last_whole_line(path: Path, torn: bytes) -> None:
    first = AuditLog(path)
    first.append(make_entry())
    first.append(make_entry(result="done 200", of=1))
    first.close()
    with path.open("ab") as file:
        file.write(torn)
    audit = AuditLog(path)
    assert audit.append(make_entry("DELETE /v1/keys/k1")) == 3
    assert [line.entry.of for line in audit.read_newest()] == [None, 1, None]
    assert audit.verify().problem == ""
    audit.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=600), min_size=6, max_size=6), of=st.none() | st.integers(1, 2**60))
def test_any_text_is_one_line_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], of: int
) -> None:
    audit = AuditLog(path := tmp_path_factory.mktemp("audit") / "audit.log")
    audit.append(AuditEntry(AT, texts[0], texts[1], texts[2], texts[3], texts[4], of))
    audit.append(make_entry(texts[5]))
    newest, oldest = audit.read_newest()
    assert newest.entry.request == texts[5][:500]
    entry = oldest.entry
    assert [entry.user, entry.key, entry.address, entry.request, entry.result] == [text[:500] for text in texts[:5]]
    assert entry.of == of
    assert path.read_bytes().count(b"\n") == 2
    assert path.read_bytes().isascii()
    assert audit.verify().problem == ""
    audit.close()


def swap(lines: list[bytes], at: int) -> list[bytes]:
    other = (at + 1) % COUNT
    lines[at], lines[other] = lines[other], lines[at]
    return lines


def rewrite(lines: list[bytes], at: int) -> list[bytes]:
    """Change who called, as one does who does not know that the next line depends on it."""
    lines[at] = lines[at].replace(b'"paul"', b'"ann"')
    return lines


def rechain(lines: list[bytes], at: int) -> list[bytes]:
    """Change a line and give it a right hash, as one does who cannot change the lines after it."""
    fields = json.loads(lines[at])
    before = "0" * 64 if at == 0 else json.loads(lines[at - 1])["hash"]
    fields["user"] = "ann"
    del fields["hash"]
    line = json.dumps(fields, separators=(",", ":")) + "\n"
    digest = hashlib.sha256((before + line).encode()).hexdigest()
    lines[at] = line.replace("}\n", f',"hash":"{digest}"}}\n').encode()
    return lines


CHANGES: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "removed": lambda lines, at: lines[:at] + lines[at + 1 :],
    "doubled": lambda lines, at: [*lines[: at + 1], *lines[at:]],
    "swapped": swap,
    "rewritten": rewrite,
    "rewritten with a right hash": rechain,
    "spaced": lambda lines, at: [*lines[:at], lines[at].replace(b",", b", ", 1), *lines[at + 1 :]],
    "emptied": lambda lines, at: [*lines[:at], b"\n", *lines[at + 1 :]],
    "cut off": lambda lines, at: lines[:at],
}


@pytest.mark.parametrize("at", range(COUNT))
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_line_shows(path: Path, change: str, at: int) -> None:
    audit = AuditLog(path)
    for number in range(COUNT):
        audit.append(make_entry(f"POST /v1/experiments/{number}/kill"))
    head = audit.verify().head
    audit.close()
    assert verify_file(path, [head]).problem == ""
    path.write_bytes(b"".join(CHANGES[change](path.read_bytes().splitlines(keepends=True), at)))
    assert verify_file(path, [head]).problem, "the head that was kept elsewhere shows it"
    if change not in ("cut off", "rewritten with a right hash") and (change, at) != ("removed", COUNT - 1):
        assert verify_file(path).problem, "the chain alone shows it"


@pytest.mark.parametrize("change", ["something else has written", "replaced", "removed"])
def test_a_log_that_another_has_changed_takes_no_line(audit: AuditLog, path: Path, change: str) -> None:
    audit.append(make_entry())
    if change == "something else has written":
        with path.open("ab") as file:
            file.write(b"{}\n")
    elif change == "replaced":
        path.rename(path.with_suffix(".old"))
        path.write_bytes(b"")
    else:
        path.unlink()
    with pytest.raises(StoreError, match="nothing is changed"):
        audit.append(make_entry())


def test_a_full_disk_takes_no_line_and_a_kill_is_written_when_there_is_room(audit: AuditLog, path: Path) -> None:
    audit.append(make_entry())
    size = path.stat().st_size
    with full_disk(size + 20):
        with pytest.raises(StoreError, match="nothing is changed"):
            audit.append(make_entry("POST /v1/submissions"))
        assert path.stat().st_size == size, "no part of a line stays"
        assert audit.append_late(make_entry("POST /v1/experiments/5/kill")) is None
        assert audit.append_late(make_entry("POST /v1/experiments/6/kill")) is None
    assert audit.append(make_entry("POST /v1/submissions")) == 4
    requests = [line.entry.request.split("/v1/")[1] for line in audit.read_newest()]
    assert requests == ["submissions", "experiments/6/kill", "experiments/5/kill", "experiments/4/kill"]
    assert audit.verify().problem == ""


def test_a_server_that_has_lost_its_claim_writes_nothing(path: Path) -> None:
    def refuse() -> None:
        raise StoreError("another server may have the claim")

    audit = AuditLog(path, refuse)
    with pytest.raises(StoreError, match="another server"):
        audit.append(make_entry())
    assert path.read_bytes() == b""
    audit.close()


def test_threads_make_one_chain(audit: AuditLog) -> None:
    threads = [
        threading.Thread(target=lambda: [audit.append(make_entry()) for _ in range(50)], daemon=True) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check = audit.verify()
    assert (check.problem, check.head.number) == ("", 400)


@pytest.mark.parametrize("content", [b"hello\n", b"{}\n", b'["n"]\n', b'{"n":1,"at":"soon"}\n'])
def test_a_file_of_something_else_is_no_audit_log(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not one of an audit log"):
        AuditLog(path)
    assert verify_file(path).problem == "line 1 is not a line of an audit log"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened: No such file"):
        AuditLog(tmp_path / "absent" / "audit.log")
    os.symlink("/dev/null", tmp_path / "link")
    with pytest.raises(StoreError, match="cannot be opened"):
        AuditLog(tmp_path / "link")
    with pytest.raises(StoreError, match="cannot be read"):
        verify_file(tmp_path / "absent")
