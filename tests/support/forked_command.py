"""The command `riseml`, forked from a process that has imported all of its commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, AnyStr

from tests.support.fork_server import Descriptor, ForkedProcess, take_place


class ForkedCommand(subprocess.Popen[AnyStr]):
    """A forked `riseml`, with everything that `subprocess.Popen` offers: pipes, `communicate`, signals.

    It gets arguments, variables, working directory and streams as a started command does, and calls what the console
    script calls. It replaces the step of `Popen` that starts the program, whose parameters Python 3.8 to 3.14 share.

    Args:
        args: the path of `riseml` and its arguments; further ones as for `subprocess.Popen`, with `cwd` and `env`.
    """

    def _execute_child(self, args: list[str], *others: Any) -> None:
        where, environ, pipes = others[4], others[5], others[9:15]
        streams = [Descriptor(pipes[end]) for end in (0, 3, 5)]
        try:
            self._forked = ForkedProcess(_run_command, args, dict(environ), str(where), streams)
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # those of the command, and /dev/null
        self.pid = self._forked.pid
        self._child_created = True

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        self.returncode = self._forked.poll()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, at most so many seconds, and return its exit code."""
        self.returncode = self._forked.wait(timeout)
        return self.returncode


def _run_command(args: list[str], environ: Mapping[str, str], where: str, streams: list[Descriptor]) -> None:
    """Become `riseml` with these arguments, in the forked process."""
    take_place(environ, where)
    for number, stream in enumerate(streams):
        os.dup2(stream.number, number)
        os.close(stream.number)
    buffering = 1 if os.isatty(1) else -1
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # the process reads it until its end
    sys.stdout = open(1, "w", buffering=buffering, closefd=False)  # noqa: SIM115  # and writes to it until then
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115  # as to this one
    sys.argv = args
    from riseml.cli.entry import run

    try:
        run()
    except Exception:  # noqa: BLE001  # as Python itself handles an exception that nothing catches
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
