"""Threads that wake the loop after a change on a host. Without them the loop notices changes later."""

from __future__ import annotations

import logging
import threading

from riseml.base.errors import RisemlError
from riseml.executors.base import Executor
from riseml.executors.pool import HostPool
from riseml.server.reconcile.wake import Wake

_PAUSE = 5.0  # seconds between two attempts to reach a host

log = logging.getLogger(__name__)


class ChangeListeners:
    """One thread for each host, for as long as the host is in the pool.

    Args:
        pool: the hosts that are in force.
        wake: set at every change.
        stopping: set when the server ends.
    """

    def __init__(self, pool: HostPool, wake: Wake, stopping: threading.Event) -> None:
        self._pool = pool
        self._wake = wake
        self._stopping = stopping

    def listen_to(self, executors: tuple[Executor, ...]) -> None:
        """Start a thread for each of these hosts."""
        for executor in executors:
            name = f"changes-{executor.name}"
            threading.Thread(target=self._listen_to_host, args=(executor,), name=name, daemon=True).start()

    def _listen_to_host(self, executor: Executor) -> None:
        problem: str | None = None  # why the last attempt ended, logged once
        while self._is_in_force(executor):
            try:
                for _ in executor.changes():
                    problem = None
                    self._wake.set()
                    if not self._is_in_force(executor):
                        return
            except RisemlError as error:
                if problem != error.message:
                    log.info("host %s sends no events: %s", executor.name, error.message)
                problem = error.message
            except Exception:
                log.exception("the events of host %s cannot be read", executor.name)
            self._stopping.wait(_PAUSE)

    def _is_in_force(self, executor: Executor) -> bool:
        return not self._stopping.is_set() and self._pool.executors.get(executor.name) is executor
