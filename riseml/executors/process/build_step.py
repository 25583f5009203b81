"""One command of a build: its output line by line, its exit code, its end when the build is cancelled."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder
from riseml.terminal_text import plain_line

_NOISE = re.compile(r" \+ |Using Python ")  # uv names every package that it installed
_LOOK = 200  # milliseconds until the end of a command is noticed whose output somebody else still holds
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Step:
    """A command, where it runs, and the descriptor that it keeps open for as long as it lives."""

    command: list[str]
    folder: Path
    environ: Mapping[str, str]
    keeps: int

    def do(self, command: list[str]) -> Step:
        """The same with another command."""
        return replace(self, command=command)


def run_step(step: Step, order: BuildOrder) -> int:
    """Run it to its end; its exit code as a shell reports it.

    Raises:
        EngineError: the build was cancelled, or the command cannot be started.
    """
    try:
        process = subprocess.Popen(
            step.command,
            cwd=step.folder,
            env=dict(step.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(step.keeps,),
            start_new_session=True,
        )
    except OSError as error:
        raise EngineError(f"{step.command[0]} cannot be started: {error.strerror}", permanent=True) from error
    order.cancellation.attach(lambda: _kill_group(process))
    with process:
        try:
            _copy_output(process, order)
            code = process.wait()
        finally:
            _kill_group(process)
            order.cancellation.attach(lambda: None)
    order.cancellation.check()
    return 128 - code if code < 0 else code


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _copy_output(process: subprocess.Popen[bytes], order: BuildOrder) -> None:
    """Pass on what it prints, until it has ended and nothing more is there: a daemon that it left may hold the pipe."""
    assert process.stdout is not None, "it was opened with a pipe"
    output = process.stdout.fileno()
    poll = select.poll()
    poll.register(output, select.POLLIN)
    rest = b""
    while True:
        if poll.poll(_LOOK):
            data = os.read(output, _CHUNK)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                _emit(line, order)
        elif process.poll() is not None:
            break
    _emit(rest, order)


def _emit(line: bytes, order: BuildOrder) -> None:
    """A line without colours, and of a progress bar its last state."""
    text = plain_line(line.decode("utf-8", "replace"))
    if text.strip() and not _NOISE.match(text):
        order.emit(text)
