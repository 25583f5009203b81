"""Run a command in a job with the streams of this process: `exec` and `shell`."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import threading
import tty
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress

from riseml.base.errors import Interrupted
from riseml.base.stream_messages import LONGEST_PIECE, Channel, ChannelData, CommandExit, CommandRequest, WindowSize
from riseml.client.exchange import Address
from riseml.client.stream_client import StreamConnection, command_path, open_stream

_INPUT = 0  # this process's standard input
_OUTPUT = 1
_ERRORS = 2
_TARGETS = {Channel.OUTPUT: _OUTPUT, Channel.ERRORS: _ERRORS}
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_in_job(address: Address, identity: str, request: CommandRequest) -> int:
    """Run a command in a job, with standard input, output and error of this process; return its exit code.

    With a terminal in the request, the terminal of this process is raw until the command ends.

    Raises:
        RisemlError: the command could not be started, or its stream broke.
    """
    return asyncio.run(_run_command(address, identity, request))


def ask_job(address: Address, identity: str, command: tuple[str, ...]) -> str:
    """Run a command without input in a job, and return what it printed.

    Raises:
        RisemlError: the command could not be started, or its stream broke.
    """
    return asyncio.run(_read_output(address, identity, CommandRequest(command)))


def read_window_size() -> WindowSize:
    """Return the size of the terminal at standard input."""
    size = os.get_terminal_size(_INPUT)
    return WindowSize(size.lines, size.columns)


async def _run_command(address: Address, identity: str, request: CommandRequest) -> int:
    this = asyncio.current_task()
    assert this is not None, "asyncio.run has made it"
    loop = asyncio.get_running_loop()
    for number in _ENDINGS:  # restore the terminal when a signal ends this process, too
        loop.add_signal_handler(number, this.cancel)
    try:
        async with open_stream(address, command_path(identity), request) as stream:
            with _raw_terminal() if request.terminal is not None else _plain_streams():
                if request.terminal is not None:
                    _follow_size(stream)
                threading.Thread(target=_copy_input, args=(stream, loop), name="input", daemon=True).start()
                return await _copy_output(stream)
    except asyncio.CancelledError:
        return Interrupted.exit_code


async def _read_output(address: Address, identity: str, request: CommandRequest) -> str:
    output = b""
    async with open_stream(address, command_path(identity), request) as stream:
        while len(output) < LONGEST_PIECE:
            match await stream.receive():
                case ChannelData(channel, content):
                    output += content if channel is Channel.OUTPUT else b""
                    await stream.grant(len(content))
                case CommandExit():
                    break
                case _:
                    continue
    return output.decode("utf-8", "replace")


async def _copy_output(stream: StreamConnection) -> int:
    """Write what the command prints; return its exit code."""
    while True:
        match await stream.receive():
            case ChannelData(channel, content):
                _write_all(_TARGETS[channel], content)
                await stream.grant(len(content))
            case CommandExit(code):
                return code
            case _:
                continue


def _copy_input(stream: StreamConnection, loop: asyncio.AbstractEventLoop) -> None:
    """Send this process's input. A thread reads it, as asyncio cannot wait for a file; it ends with the process."""
    data = b"."
    while data:
        try:
            data = os.read(_INPUT, LONGEST_PIECE)
        except OSError:  # the terminal is gone, or this process is in the background
            data = b""
        send = stream.send_input(data) if data else stream.end_input()
        try:
            asyncio.run_coroutine_threadsafe(send, loop).result()
        except (RuntimeError, CancelledError):  # the command has ended meanwhile
            send.close()
            return


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _follow_size(stream: StreamConnection) -> None:
    """Send the size of the terminal now, since it may have changed while the command began, and after each change."""
    loop = asyncio.get_running_loop()
    pending: set[asyncio.Task[None]] = set()

    def send() -> None:
        with suppress(OSError):  # the terminal is gone, which ends the command in a moment
            task = loop.create_task(stream.resize(read_window_size()))
            pending.add(task)  # keep a reference: the event loop has only a weak one
            task.add_done_callback(pending.discard)

    loop.add_signal_handler(signal.SIGWINCH, send)
    send()


@contextmanager
def _plain_streams() -> Iterator[None]:
    yield


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Pass on every key unchanged, including Ctrl-C; restore the terminal at the end."""
    before = termios.tcgetattr(_INPUT)
    try:
        tty.setraw(_INPUT, termios.TCSADRAIN)  # keep keys that were typed before
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(_INPUT, termios.TCSADRAIN, before)
