"""Start a supervisor: it answers once what it supervises runs, and from then on outlives the server."""

from __future__ import annotations

import os
import subprocess

from riseml.base.errors import EngineError
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.process_tree import MARKER

_START_TIMEOUT = 60.0  # seconds within which a supervisor must answer


def start_supervisor(title: str, order: dict[str, object], marker: str) -> None:
    """Start a supervisor and wait for its answer. The order has secrets in it, so it goes through a pipe.

    Args:
        title: for people who look at the processes.
        order: see `Supervisor`.
        marker: the value of `MARKER` in the environment of every process below it.

    Raises:
        EngineError: the supervisor did not start, or could not start its main process.
    """
    try:
        process = subprocess.run(
            supervisor.make_command(title),
            input=supervisor.pack_order(order),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, MARKER: marker},
            cwd="/",
            start_new_session=True,
            timeout=_START_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"the supervisor of {title} did not start: {error}") from error
    answer = process.stdout.decode("utf-8", "replace")
    if answer not in (supervisor.STARTED, supervisor.TAKEN):
        raise EngineError(f"the supervisor of {title} {answer or 'ended without an answer'}")
