"""The last output of a command: all of it is taken, no more, and what a full disk has lost is mentioned."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from riseml.executors.slurm.role_wrapper import RoleWrapper
from riseml.executors.supervision import output_log
from riseml.executors.supervision.command_runner import CommandRunner
from riseml.executors.supervision.output_log import HEADER, LONGEST_LOG, OWN, STDOUT, OutputLog, count_last_reads
from riseml.executors.supervision.supervisor import Supervisor

Take = Callable[[int], bool]
End = Callable[[pytest.MonkeyPatch, Take, int], None]


def end_supervisor(patch: pytest.MonkeyPatch, take: Take, pipe: int) -> None:
    supervisor = Supervisor.__new__(Supervisor)
    supervisor._streams = {pipe: STDOUT}
    patch.setattr(supervisor, "_copy_output", take)
    supervisor._copy_rest()


def end_wrapper(patch: pytest.MonkeyPatch, take: Take, pipe: int) -> None:
    wrapper = RoleWrapper.__new__(RoleWrapper)
    wrapper.streams = {pipe: STDOUT}
    patch.setattr(wrapper, "_copy_output", take)
    wrapper._copy_rest()


def end_runner(patch: pytest.MonkeyPatch, take: Take, pipe: int) -> None:
    runner = CommandRunner.__new__(CommandRunner)
    runner._sock, there = socket.socketpair()
    runner._outputs, runner._to_server = {pipe: 1}, bytearray()
    patch.setattr(runner, "_copy_output", take)
    with runner._sock, there:
        runner._send_rest(0)


@pytest.mark.parametrize("end", [end_supervisor, end_wrapper, end_runner])
def test_a_process_that_prints_forever_keeps_no_command_from_ending(end: End, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setuid program of another user, which cannot be killed, and prints as fast as its output is read."""
    taken: list[int] = []

    def take(descriptor: int) -> bool:
        taken.append(descriptor)
        assert len(taken) < 1000
        return True

    reader, writer = os.pipe()
    end(monkeypatch, take, reader)
    assert taken
    os.close(reader)
    os.close(writer)


def test_all_that_is_in_a_pipe_is_taken() -> None:
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x" * 1000):
            pass
    with suppress(BlockingIOError):
        for _ in range(count_last_reads(reader, 1000)):
            os.read(reader, 1000)
    with pytest.raises(BlockingIOError):
        os.read(reader, 1)
    os.close(reader)
    os.close(writer)


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(output_log, "os", SimpleNamespace(**{**vars(os), "write": refuse}))
        yield


def read_records(path: Path) -> list[tuple[int, bytes]]:
    data, found = path.read_bytes(), []
    while data:
        _, stream, size = HEADER.unpack_from(data)
        found.append((stream, data[HEADER.size : HEADER.size + size]))
        data = data[HEADER.size + size :]
    return found


NOTE = (OWN, b"[riseml: 5 bytes of output are lost, the disk was full]\n")


def test_output_that_a_full_disk_lost_at_the_very_end_is_mentioned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = OutputLog(str(tmp_path / "log"))
    log.write_output(STDOUT, b"one\n")
    log.note_loss()
    with full_disk(monkeypatch):
        log.write_output(STDOUT, b"two\n.")
        log.note_loss()
    log.note_loss()
    log.note_loss()
    assert read_records(tmp_path / "log") == [(STDOUT, b"one\n"), NOTE]
    log._lost, log._end = 5, LONGEST_LOG + 1
    log.note_loss()
    assert read_records(tmp_path / "log") == [(STDOUT, b"one\n"), NOTE]


def test_the_end_of_a_process_comes_after_the_note_about_lost_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor({"folder": str(tmp_path), "identity": {}})
    supervisor._log = OutputLog(str(tmp_path / "log"))
    with full_disk(monkeypatch):
        supervisor._log.write_output(STDOUT, b"last\n")
    supervisor._write_end()
    assert read_records(tmp_path / "log") == [NOTE]


def test_the_end_of_a_role_comes_after_the_note_about_lost_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = RoleWrapper.__new__(RoleWrapper)
    wrapper.folder, wrapper.role, wrapper.error = str(tmp_path), "train", ""
    wrapper.log = OutputLog(str(tmp_path / "log"))
    with full_disk(monkeypatch):
        wrapper.log.write_output(STDOUT, b"last\n")
    wrapper._write_exit(0)
    assert read_records(tmp_path / "log") == [NOTE]
