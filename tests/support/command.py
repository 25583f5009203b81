"""The command `riseml` as a process without a terminal.

Most tests fork it (`forked_command`). Those of starts, terminals, Ctrl-C and limits start `RISEML` itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.fork_server import starts_the_same
from tests.support.forked_command import ForkedCommand
from tests.support.waiting import DEADLINE

RISEML = str(Path(sys.executable).with_name("riseml"))
"""The installed command."""


def plain_environ(**more: str) -> dict[str, str]:
    """Return the variables of this process without those of riseml and Docker, and with some more."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RISEML_", "DOCKER_"))}
    return kept | more


def start_riseml(
    words: Sequence[str], where: Path, environ: Mapping[str, str], **options: Any
) -> subprocess.Popen[Any]:
    """Start a command whose output and messages are pipes: forked, unless `starts_the_same` says otherwise.

    Args:
        words: the arguments.
        where: its working directory.
        environ: its whole environment.
        options: further ones of `subprocess.Popen`: `text=True`, or `stdin=PIPE` for input, which is empty otherwise.
    """
    kind: type[subprocess.Popen[Any]] = ForkedCommand if starts_the_same(environ) else subprocess.Popen
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return kind([RISEML, *words], cwd=where, env=dict(environ), **streams)


def run_riseml(
    words: Sequence[str], where: Path, environ: Mapping[str, str], timeout: float = DEADLINE
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its standard input is empty.

    Args:
        words: the arguments.
        where: its working directory.
        environ: its whole environment.
        timeout: seconds.

    Raises:
        subprocess.TimeoutExpired: it has not ended in time, and was killed.
    """
    with start_riseml(words, where, environ, text=True) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
