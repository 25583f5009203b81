"""The processes of a job: signal its supervisor and its tree, and kill the processes that outlived their supervisor.

A process is identified by pid, start time and boot id together, never by its pid alone. Every process of a job inherits
a marker in its environment, by which it is found when the supervisor was killed. A process that has erased its
environment, or has written its title there, is found by the session and by the OOM score that it inherited from the
supervisor.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable

import psutil

from riseml.executors.supervision import process_tree, supervisor
from riseml.executors.supervision.job_records import SupervisorRecord, runs_now
from riseml.executors.supervision.process_tree import MARKER

_END_TIMEOUT = 5.0  # seconds that a supervisor gets to end its job before it is killed itself


def signal_supervisor(record: SupervisorRecord, number: int) -> bool:
    """Signal the supervisor; False when it has ended. Another process that has its pid now gets no signal."""
    try:
        pidfd = os.pidfd_open(record.pid)
    except ProcessLookupError:
        return False
    except OSError:  # a kernel before 5.3
        return runs_now(record) and _try_signal(lambda: os.kill(record.pid, number))
    try:
        return runs_now(record) and _try_signal(lambda: signal.pidfd_send_signal(pidfd, number))
    finally:
        os.close(pidfd)


def end_supervised_job(record: SupervisorRecord) -> None:
    """Let the supervisor kill its job; kill the supervisor when it does not end; then kill what is left."""
    if signal_supervisor(record, supervisor.KILL_ALL):
        signal_supervisor(record, signal.SIGCONT)
        _wait_for_exit(record.pid)
        signal_supervisor(record, signal.SIGKILL)
    kill_leftovers(record, record.marker)


def kill_leftovers(record: SupervisorRecord, marker: str) -> None:
    """Kill what a supervisor has left behind: every process that carries the marker of its job or is in its session,
    and every process below one, until none is left.
    """
    leftovers: set[psutil.Process] = set()
    while True:
        session = _find_session(record)
        fresh = {
            candidate for candidate in psutil.process_iter() if _is_left(candidate.pid, session, marker)
        } - leftovers
        if not fresh:
            break
        for process in fresh:
            leftovers |= {process, *_list_children(process)}
        for process in leftovers:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()  # compares the start time first
    for process in leftovers:
        _wait_for_exit(process.pid)


def list_job_processes(record: SupervisorRecord) -> list[psutil.Process]:
    """Return the processes of a running job, without its supervisor."""
    if not runs_now(record):
        return []
    processes = []
    for pid in process_tree.list_descendants(record.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(pid))
    return processes


def _try_signal(send: Callable[[], None]) -> bool:
    try:
        send()
    except ProcessLookupError:
        return False
    return True


def _wait_for_exit(pid: int) -> None:
    """Wait until a process has ended, a zombie included, or until the timeout."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except OSError:  # a kernel before 5.3
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            psutil.Process(pid).wait(_END_TIMEOUT)
        return
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    ended.poll(_END_TIMEOUT * 1000)
    os.close(pidfd)


def _find_session(record: SupervisorRecord) -> int:
    """Return the session of a supervisor; -1 when the session is known to be gone: while a process is in it, no other
    process gets the pid of the supervisor.
    """
    stat_fields = supervisor.read_stat(record.pid)
    if record.boot != supervisor.read_boot_id() or (stat_fields is not None and stat_fields[2] != record.start):
        return -1
    return -1 if record.pid in (0, os.getsid(0)) else record.pid


def _is_left(pid: int, session: int, marker: str) -> bool:
    """Return True for a process of a job. A process that has erased its environment is still in the supervisor's
    session, and has the OOM score of a job. The score matters because, long after the job, another program may have the
    number of that session.
    """
    try:
        if os.getsid(pid) == session and process_tree.has_raised_score(pid):
            return True
    except OSError:
        return False
    try:
        return bool(marker) and process_tree.read_environment(pid).get(MARKER) == marker
    except OSError:
        return False


def _list_children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
