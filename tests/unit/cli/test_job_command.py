"""A command in a job has the streams of this process, and its exit code goes to the caller."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from riseml.base.stream_messages import LONGEST_PIECE, Channel, ChannelData, CommandExit, CommandRequest
from riseml.cli import job_command
from riseml.cli.job_command import ask_job, run_in_job
from riseml.client.exchange import Address
from tests.support.waiting import DEADLINE

ADDRESS = Address(Path("/nowhere"))


class PrintingJob:
    """A stream of a job that sends these messages, and then the last one without end.

    Args:
        messages: what the command prints, and its end.
        reads: the command ends when its input has ended.
    """

    def __init__(self, *messages: ChannelData | CommandExit, reads: bool = False) -> None:
        self.messages = messages
        self.reads = reads
        self.received = 0
        self.granted = 0
        self.typed = b""
        self.has_input = asyncio.Event()  # set when all input has come
        self.commands: list[tuple[str, ...]] = []

    @asynccontextmanager
    async def open_stream(self, _address: Address, _path: str, order: CommandRequest) -> AsyncIterator[PrintingJob]:
        self.commands.append(order.command)
        yield self

    async def receive(self) -> ChannelData | CommandExit:
        self.received += 1
        message = self.messages[min(self.received, len(self.messages)) - 1]
        if self.reads and isinstance(message, CommandExit):
            await self.has_input.wait()
        return message

    async def grant(self, amount: int) -> None:
        self.granted += amount

    async def send_input(self, content: bytes) -> None:
        self.typed += content

    async def end_input(self) -> None:
        self.has_input.set()


def test_the_three_streams_are_those_of_this_process(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    job = PrintingJob(
        ChannelData(Channel.OUTPUT, b"out"), ChannelData(Channel.ERRORS, b"err"), CommandExit(7), reads=True
    )
    reading, writing = os.pipe()
    os.write(writing, b"typed")
    os.close(writing)
    monkeypatch.setattr(job_command, "_INPUT", reading)
    monkeypatch.setattr(job_command, "open_stream", job.open_stream)
    code = run_in_job(ADDRESS, "4.master", CommandRequest(("cat",)))
    os.close(reading)
    captured = capfd.readouterr()
    assert (code, job.typed, captured.out, captured.err) == (7, b"typed", "out", "err")
    assert job.granted == 6, "what was written may come again"


def test_an_answer_is_what_the_job_printed_to_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    job = PrintingJob(ChannelData(Channel.ERRORS, b"note"), ChannelData(Channel.OUTPUT, b"80\xff\n"), CommandExit(0))
    monkeypatch.setattr(job_command, "open_stream", job.open_stream)
    assert ask_job(ADDRESS, "4.master", ("echo", "80")) == "80\ufffd\n"
    assert job.commands == [("echo", "80")]


def test_an_answer_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    job = PrintingJob(ChannelData(Channel.OUTPUT, b"y" * 1024))
    monkeypatch.setattr(job_command, "open_stream", job.open_stream)
    assert len(ask_job(ADDRESS, "4.master", ("yes",))) == LONGEST_PIECE
    assert job.received == LONGEST_PIECE // 1024


def test_input_that_is_being_sent_when_the_command_ends_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread ends with an error, which would be printed over the end of the command's output."""
    reader, writer = os.pipe()
    errors: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(job_command, "_INPUT", reader)
    monkeypatch.setattr(threading, "excepthook", errors.append)

    class FullStream:
        def __init__(self) -> None:
            self.sending = asyncio.Event()

        async def send_input(self, _data: bytes) -> None:
            self.sending.set()
            await asyncio.Event().wait()

    async def end_while_sending() -> threading.Thread:
        stream = FullStream()
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=job_command._copy_input, args=(stream, loop), daemon=True)
        thread.start()
        os.write(writer, b"x")
        await stream.sending.wait()
        return thread

    thread = asyncio.run(end_while_sending())  # it cancels what is being sent
    thread.join(DEADLINE)
    os.close(reader)
    os.close(writer)
    assert (thread.is_alive(), errors) == (False, [])
