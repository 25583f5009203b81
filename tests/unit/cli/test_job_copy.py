"""`riseml cp` into a job whose programs are not the usual ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from riseml.cli.job_copy import JobPath, copy_in
from riseml.client.exchange import Address
from riseml.errors import Refused
from riseml.stream_messages import LONGEST_PIECE, Channel, CommandExit, CommandOrder, Piece

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
        self._answer: list[Piece | CommandExit] = []

    @asynccontextmanager
    async def open_stream(self, _address: Address, _path: str, _order: CommandOrder) -> AsyncIterator[TalkingJob]:
        self.usual -= 1
        self._answer = [Piece(Channel.OUTPUT, b"folder\n"), CommandExit(0)] if self.usual >= 0 else []
        yield self

    async def receive(self) -> Piece | CommandExit:
        if self._answer:
            return self._answer.pop(0)
        self.received += 1
        assert self.received <= MOST_PIECES
        return Piece(Channel.OUTPUT, b"y" * LONGEST_PIECE)

    async def grant(self, _amount: int) -> None:
        return

    async def send_input(self, _content: bytes) -> None:
        return

    async def end_input(self) -> None:
        return


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
