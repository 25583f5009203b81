"""The installed command `riseml`, as a process without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.waiting import DEADLINE

RISEML = str(Path(sys.executable).with_name("riseml"))


def plain_environ(**more: str) -> dict[str, str]:
    """Return the variables of this process without those of riseml and Docker, and with some more."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RISEML_", "DOCKER_"))}
    return kept | more


def run_riseml(words: list[str], where: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its standard input is empty.

    Args:
        words: the arguments.
        where: its working directory.
        environ: its whole environment.
    """
    return subprocess.run(
        [RISEML, *words],
        cwd=where,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
