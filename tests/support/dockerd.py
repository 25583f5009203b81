"""Which `dockerd` the tests start for engines of their own."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_VARIABLE = "RISEML_TEST_DOCKERD"


def dockerd_command() -> tuple[str, ...]:
    """Return the words that start a `dockerd`: this machine's, or the command in `RISEML_TEST_DOCKERD`.

    `scripts/test-engines` sets the variable to start a newer engine in a root file system of its own.
    """
    return tuple(shlex.split(os.environ.get(_VARIABLE, "dockerd")))


def dockerd_cache() -> Path:
    """Return the folder that keeps the data of the tests' own engines; a newer engine never shares an older one's."""
    cache = Path(os.environ.get("RISEML_TEST_CACHE") or Path.home() / ".cache" / "riseml").resolve()
    return cache / ("pool-newer" if _VARIABLE in os.environ else "pool")
