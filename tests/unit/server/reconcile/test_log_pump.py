"""Followers of logs: none ends before the log is complete or full, and only one of them writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import Unreachable
from riseml.base.names import HostName, JobName
from riseml.executors.base import OutputLost
from riseml.model import Capacity, ContainerObservation, Frame, JobKey, LogCursor
from riseml.server.clock import now
from riseml.server.reconcile import log_pump
from riseml.server.reconcile.log_pump import LogPump
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.wake import Wake
from riseml.spec.config.types import Shell
from riseml.store.logs.log_store import LogStore, read_all_lines
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE, wait_for

KEY = JobKey(4, JobName("master"), 1)
FRAME = Frame("2026-08-31T07:23:40.1Z", 1, b"one\n")


class Host(MemoryExecutor):
    """A host whose log has the pieces of the test; `reads` counts the requests for it."""

    def __init__(self) -> None:
        super().__init__(HostName("h1"), Capacity(1.0, 1024))
        self.troubles: list[Exception] = []
        self.always: Exception | None = None
        self.pieces: list[list[Frame]] = [[FRAME]]
        self.reads = 0
        self.goes_on = threading.Event()

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        self.reads += 1
        if self.always is not None:
            raise self.always
        if self.troubles:
            raise self.troubles.pop(0)
        if follow:
            self.goes_on.wait(DEADLINE)
        if not cursor.positions:
            yield from self.pieces


class Scene:
    """A pump whose logs are in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.logs = LogStore(folder)
        self.pump = LogPump(self.logs, Notifier(), Wake())
        self.host = Host()

    def is_drained(self, host: Host, *, running: bool = False) -> bool:
        code = None if running else 0
        return self.pump.follow_container(host, ContainerObservation(KEY, "c1", started=True, exit_code=code))

    def lines(self) -> list[bytes]:
        return [line.text for line in read_all_lines(self.logs, KEY.experiment)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize(
    "trouble", [Unreachable("away"), OSError(28, "full"), ValueError("what is this"), KeyError("x")]
)
def test_a_follower_tries_again_after_any_error(scene: Scene, trouble: Exception) -> None:
    scene.host.troubles = [trouble]
    scene.host.goes_on.set()  # the follower may try again before it knows of the end
    wait_for("the log is drained", lambda: scene.is_drained(scene.host), DEADLINE)
    assert scene.lines() == [b"one"]


@pytest.mark.parametrize("together", [True, False])
def test_the_shell_of_a_job_is_that_of_the_first_line_of_stdout(scene: Scene, *, together: bool) -> None:
    """An engine may write a line of stderr first, which the shell has printed a moment before or after that."""
    said = Frame("2026-08-31T07:23:40.1Z", 2, b"there is no bash\n")
    report = Frame("2026-08-31T07:23:40.2Z", 1, b'\x1eriseml.report {"riseml.shell": 1}\n')
    later = Frame("2026-08-31T07:23:40.3Z", 1, b'\x1eriseml.report {"riseml.shell": 2}\n')
    scene.host.pieces = [[said, report, later]] if together else [[said], [report, later]]
    scene.host.goes_on.set()  # the follower may read before it knows of the end
    wait_for("the log is drained", lambda: scene.is_drained(scene.host), DEADLINE)
    assert scene.pump.find_shell(ContainerObservation(KEY, "c1", started=True, exit_code=0)) is Shell.SH


def test_a_log_of_which_the_host_has_lost_a_part_says_so_and_ends(scene: Scene) -> None:
    scene.host.troubles = [OutputLost("/x/log was removed or cut")]
    scene.host.goes_on.set()
    wait_for("the log is drained", lambda: scene.is_drained(scene.host), DEADLINE)
    assert scene.lines() == [b"[riseml: lines are missing here: /x/log was removed or cut]"]


def test_the_servers_log_says_once_why_a_log_cannot_be_read(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pump, "_RETRY_PAUSES", (0.0,))
    scene.host.troubles = [Unreachable("away"), Unreachable("away"), OSError(28, "full"), Unreachable("away")]
    scene.host.goes_on.set()  # the follower may read a fifth time before it knows of the end
    wait_for("the log is drained", lambda: scene.is_drained(scene.host), DEADLINE)
    said = [record.getMessage() for record in caplog.records]
    begins = "the log of #4.master a1 on h1 cannot be read now, and is read again: "
    assert said == [f"{begins}away", f"{begins}[Errno 28] full", f"{begins}away"]


def test_a_follower_pauses_ever_longer_when_the_log_cannot_be_read(scene: Scene) -> None:
    scene.host.always = Unreachable("away")
    begun = time.monotonic()
    assert not scene.is_drained(scene.host)
    wait_for("it was tried three times", lambda: scene.host.reads > 2, DEADLINE)
    assert time.monotonic() - begun > 1.0, "attempts come ever more rarely"
    scene.pump.drop_followers(frozenset())
    wait_for("the follower has ended", lambda: not followers(), DEADLINE)


def test_a_follower_goes_on_with_the_new_executor_of_its_host(scene: Scene) -> None:
    scene.host.always = Unreachable("it was closed")
    assert not scene.is_drained(scene.host, running=True)
    wait_for("it was tried", lambda: scene.host.reads, DEADLINE)
    now = Host()
    now.goes_on.set()  # the follower may use it before it knows of the end
    wait_for("the log is drained", lambda: scene.is_drained(now), DEADLINE)
    assert scene.lines() == [b"one"]


def test_one_follower_writes_the_log_of_a_host_that_left_the_pool_and_is_back(scene: Scene) -> None:
    assert not scene.is_drained(scene.host, running=True)
    wait_for("the log is followed", lambda: scene.host.reads, DEADLINE)
    scene.pump.drop_followers(frozenset())
    back = Host()
    back.goes_on.set()
    wait_for("the log is drained", lambda: scene.is_drained(back), DEADLINE)
    scene.host.goes_on.set()
    wait_for("the first one has ended", lambda: not followers(), DEADLINE)
    assert scene.lines() == [b"one"]


def followers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("log-4-")]


ENDLESS = JobKey(1, JobName("train"), 1)
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
    running = ContainerObservation(ENDLESS, "id", started=True, started_at=now())
    assert not pump.follow_container(executor, running)
    assert executor.left.wait(DEADLINE), "the follower still reads the log"
    assert not pump.follow_container(executor, running), "the job has not ended"
    ended = replace(running, exit_code=0, finished_at=now())
    wait_for("the log is drained", lambda: pump.follow_container(executor, ended), DEADLINE)
    assert executor.reads == 1
    assert len(list(read_all_lines(logs, 1))) == LIMIT // LINE + 2, "the lines up to the limit, one more, and the mark"
