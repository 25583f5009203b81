"""`riseml cp` out of a job and into one, also one whose programs are not the usual ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, Refused
from riseml.base.stream_messages import LONGEST_PIECE, Channel, ChannelData, CommandExit, CommandRequest
from riseml.cli.job_copy import JobPath, copy_in, copy_out
from riseml.client.exchange import Address
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.writer import END, pad_content, write_header

MOST_PIECES = 10  # a command that asks for more would go on without end
ADDRESS = Address(Path("/nowhere"))


class TalkingJob:
    """A stream of a job: `test` gives its usual answer, and then some program talks without end.

    Args:
        usual: the first scripts that answer as they should.
    """

    def __init__(self, usual: int) -> None:
        self.usual = usual
        self.received = 0
        self._answer: list[ChannelData | CommandExit] = []

    @asynccontextmanager
    async def open_stream(self, _address: Address, _path: str, _order: CommandRequest) -> AsyncIterator[TalkingJob]:
        self.usual -= 1
        self._answer = [ChannelData(Channel.OUTPUT, b"folder\n"), CommandExit(0)] if self.usual >= 0 else []
        yield self

    async def receive(self) -> ChannelData | CommandExit:
        if self._answer:
            return self._answer.pop(0)
        self.received += 1
        assert self.received <= MOST_PIECES
        return ChannelData(Channel.OUTPUT, b"y" * LONGEST_PIECE)

    async def grant(self, _amount: int) -> None:
        return

    async def send_input(self, _content: bytes) -> None:
        return

    async def end_input(self) -> None:
        return


class AnsweringJob(TalkingJob):
    """A stream of a job that sends one answer, and keeps what it gets."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(0)
        self.words = answer
        self.got = b""

    @asynccontextmanager
    async def open_stream(self, _address: Address, _path: str, order: CommandRequest) -> AsyncIterator[TalkingJob]:
        said = [ChannelData(Channel.OUTPUT, self.words)] if self.words else []
        self._answer = [*said, CommandExit(0)]
        self.words = b""
        yield self

    async def send_input(self, content: bytes) -> None:
        self.got += content


def pack(name: str) -> bytes:
    return b"".join((write_header(ArchiveEntry(name, EntryKind.FILE, 1)), b"x", pad_content(1), END))


@pytest.mark.parametrize(("slash", "place"), [("", "results"), ("/", "results/a")])
def test_a_target_with_a_slash_is_a_folder_that_the_copy_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slash: str, place: str
) -> None:
    monkeypatch.setattr("riseml.cli.job_copy.open_stream", AnsweringJob(pack("a")).open_stream)
    final = copy_out(ADDRESS, JobPath("4.master", "/output/a"), tmp_path / "results", wants_folder=slash != "")
    assert final == tmp_path / place
    assert final.read_text() == "x"


def test_a_target_with_a_slash_that_is_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").write_text("mine")
    monkeypatch.setattr("riseml.cli.job_copy.open_stream", AnsweringJob(pack("a")).open_stream)
    with pytest.raises(Refused, match="cannot be made a folder"):
        copy_out(ADDRESS, JobPath("4.master", "/output/a"), tmp_path / "results", wants_folder=True)
    assert (tmp_path / "results").read_text() == "mine"


@pytest.mark.parametrize("kind", [b"none", b"file"])
def test_a_target_in_a_job_with_a_slash_must_be_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: bytes
) -> None:
    (tmp_path / "file").write_text("x")
    job = AnsweringJob(kind)
    monkeypatch.setattr("riseml.cli.job_copy.open_stream", job.open_stream)
    with pytest.raises(NotFound, match=r"4\.worker has no folder /tmp/new/"):
        copy_in(ADDRESS, tmp_path / "file", JobPath("4.worker", "/tmp/new/"))
    assert job.got == b""


def test_a_link_keeps_the_name_that_the_user_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model-7.pt").write_text("x")
    (tmp_path / "latest.pt").symlink_to("model-7.pt")
    job = AnsweringJob(b"folder")
    monkeypatch.setattr("riseml.cli.job_copy.open_stream", job.open_stream)
    assert copy_in(ADDRESS, tmp_path / "latest.pt", JobPath("4.worker", "/tmp")).path == "/tmp/latest.pt"
    assert (b"latest.pt" in job.got, b"model-7.pt" in job.got) == (True, False)


@pytest.mark.parametrize("usual", [0, 1])
def test_a_job_that_talks_without_end_is_not_listened_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: int
) -> None:
    (tmp_path / "file").write_text("x")
    job = TalkingJob(usual)
    monkeypatch.setattr("riseml.cli.job_copy.open_stream", job.open_stream)
    with pytest.raises(Refused, match="the job answers with more than 4 KiB"):
        copy_in(ADDRESS, tmp_path / "file", JobPath("4.master", "/output"))
    assert job.received == 1
