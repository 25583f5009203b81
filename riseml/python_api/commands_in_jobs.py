"""Run a command in a job, and keep what it prints."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from riseml.base.stream_messages import LONGEST_PIECE, Channel, ChannelData, CommandExit, CommandRequest
from riseml.client.exchange import Address
from riseml.client.stream_client import StreamConnection, command_path, open_stream


def run_command(address: Address, job: str, command: tuple[str, ...], stdin: bytes) -> tuple[int, bytes, bytes]:
    """Run a command in a job; return its exit code, and what it printed to standard output and standard error.

    Raises:
        RisemlError: the command could not be started, or its stream broke.
    """
    running = _run_in_loop(address, job, command, stdin)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(running)
    with ThreadPoolExecutor(1) as threads:  # a cell of a notebook is called in a loop, and a thread has one loop only
        return threads.submit(asyncio.run, running).result()


async def _run_in_loop(address: Address, job: str, command: tuple[str, ...], stdin: bytes) -> tuple[int, bytes, bytes]:
    async with open_stream(address, command_path(job), CommandRequest(command)) as stream:
        sending = asyncio.create_task(_send_input(stream, stdin))
        try:
            return await _receive_output(stream)
        finally:
            sending.cancel()


async def _send_input(stream: StreamConnection, stdin: bytes) -> None:
    for start in range(0, len(stdin), LONGEST_PIECE):
        await stream.send_input(stdin[start : start + LONGEST_PIECE])
    await stream.end_input()


async def _receive_output(stream: StreamConnection) -> tuple[int, bytes, bytes]:
    printed = {Channel.OUTPUT: bytearray(), Channel.ERRORS: bytearray()}
    while True:
        match await stream.receive():
            case ChannelData(channel, content):
                printed[channel] += content
                await stream.grant(len(content))
            case CommandExit(code):
                return code, bytes(printed[Channel.OUTPUT]), bytes(printed[Channel.ERRORS])
            case _:
                continue
