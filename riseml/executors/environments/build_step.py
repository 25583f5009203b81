"""Run one command of a build: pass its output on line by line, return its exit code, end it when the build is
cancelled."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder
from riseml.records import dataclass
from riseml.terminal_text import plain_line

_BORING_LINE = re.compile(r" \+ |Using Python ")  # uv names every package that it installs
_POLL_INTERVAL = 200  # milliseconds between two checks for the end when another process keeps the pipe open
_READ_SIZE = 1 << 16  # bytes of output read at once
_LONGEST_LINE = 1 << 16  # bytes kept of a line without an end


@dataclass(frozen=True, slots=True)
class BuildStep:
    """A command of a build."""

    command: list[str]
    folder: Path  # the working directory
    environ: Mapping[str, str]
    lock: int  # descriptor that the command inherits: the environment stays locked as long as the command lives

    def with_command(self, command: list[str]) -> BuildStep:
        """Return the same step with another command."""
        return replace(self, command=command)


def run_build_step(step: BuildStep, order: BuildOrder) -> int:
    """Run a command to its end; return its exit code as a shell reports it. Its process group ends with it.

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
            pass_fds=(step.lock,),
            start_new_session=True,
        )
    except OSError as error:
        raise EngineError(f"{step.command[0]} cannot be started: {error.strerror}", permanent=True) from error
    order.cancellation.attach(lambda: _kill_group(process))
    with process:
        try:
            _emit_output(process, order)
            code = process.wait()
        finally:
            _kill_group(process)
            order.cancellation.attach(lambda: None)
    order.cancellation.check()
    return 128 - code if code < 0 else code


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _emit_output(process: subprocess.Popen[bytes], order: BuildOrder) -> None:
    """Emit the output until the process has ended and the pipe is empty; a daemon of the process may keep it open."""
    assert process.stdout is not None, "it was opened with a pipe"
    output = process.stdout.fileno()
    poll = select.poll()
    poll.register(output, select.POLLIN)
    rest = b""
    while True:
        if poll.poll(_POLL_INTERVAL):
            data = os.read(output, _READ_SIZE)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[-_LONGEST_LINE:]
            for line in lines:
                _emit_line(line, order)
        elif process.poll() is not None:
            break
    _emit_line(rest, order)


def _emit_line(line: bytes, order: BuildOrder) -> None:
    text = plain_line(line.decode("utf-8", "replace"))
    if text.strip() and not _BORING_LINE.match(text):
        order.emit(text)
