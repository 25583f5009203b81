"""Followers of logs: they stop reading a job whose log has reached the limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from riseml.base.names import HostName, JobName
from riseml.model import Capacity, ContainerObservation, Frame, JobKey, LogCursor
from riseml.server.clock import now
from riseml.server.reconcile.log_pump import LogPump
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.wake import Wake
from riseml.store.logs.log_store import LogStore, read_all_lines
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE, wait_for

KEY = JobKey(1, JobName("train"), 1)
LIMIT = 1000  # bytes
LINE = len("1 train 1 2026-08-31T07:23:46.000000001Z on and on\n") + 1  # bytes that count for each line


class EndlessExecutor(MemoryExecutor):
    """An executor whose one job prints without end."""

    def __init__(self) -> None:
        super().__init__(HostName("h1"), Capacity(4, 8192))
        self.reads = 0
        self.left = threading.Event()

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        self.reads += 1
        try:
            while True:
                yield [Frame("2026-08-31T07:23:46.000000001Z", 1, b"on and on\n")]
        finally:
            self.left.set()


def test_a_follower_stops_reading_a_job_that_has_printed_too_much(tmp_path: Path) -> None:
    executor, logs = EndlessExecutor(), LogStore(tmp_path, LIMIT)
    pump = LogPump(logs, Notifier(), Wake())
    running = ContainerObservation(KEY, "id", started=True, started_at=now())
    assert not pump.follow_container(executor, running)
    assert executor.left.wait(DEADLINE), "the follower still reads the log"
    assert not pump.follow_container(executor, running), "the job has not ended"
    ended = replace(running, exit_code=0, finished_at=now())
    wait_for("the log is drained", lambda: pump.follow_container(executor, ended), DEADLINE)
    assert executor.reads == 1
    assert len(list(read_all_lines(logs, 1))) == LIMIT // LINE + 2, "the lines up to the limit, one more, and the mark"
