"""News of jobs without asking again and again: inotify for their files, pidfds for the death of their supervisors.

Both are hints. Whoever waits gives a deadline, so that a kernel or a file system that tells nothing costs time only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from riseml.executors.process.supervisor import LOG, STATE

_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_MODIFY, _MOVED_TO, _DELETED, _IGNORED = 0x2, 0x80, 0x400, 0x8000
_CLOEXEC, _NONBLOCK = os.O_CLOEXEC, os.O_NONBLOCK
_BUFFER = 1 << 16


@dataclass(slots=True)
class _Bells:
    """How often something happened to one job."""

    path: Path
    log: int = 0
    state: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)


class Watch:
    """Watches the folders of jobs; one thread."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._notify = self._libc.inotify_init1(_CLOEXEC | _NONBLOCK)
        self._poll = select.epoll()  # takes new descriptors while somebody waits on it
        self._lock = threading.Lock()
        self._folders: dict[Path, _Bells] = {}
        self._watches: dict[int, _Bells] = {}
        self._handles: dict[int, int] = {}
        self._news = 0
        self._told = threading.Condition()
        if self._notify >= 0:
            self._poll.register(self._notify, select.EPOLLIN)
            threading.Thread(target=self._listen, name="watch", daemon=True).start()

    def add(self, folder: Path) -> None:
        """Watch the folder of a job, once."""
        with self._lock:
            if folder in self._folders:
                return
            bells = self._folders[folder] = _Bells(folder)
            if self._notify >= 0:
                mask = _MODIFY | _MOVED_TO | _DELETED
                watch = self._libc.inotify_add_watch(self._notify, os.fsencode(folder), mask)
                if watch >= 0:
                    self._watches[watch] = bells

    def add_process(self, pid: int) -> None:
        """Tell when this process ends, once. Which process it is does not matter for a hint."""
        with self._lock:
            if pid in self._handles.values() or self._notify < 0:
                return
            with contextlib.suppress(OSError):  # gone, or a kernel before 5.3
                handle = os.pidfd_open(pid)
                self._handles[handle] = pid
                self._poll.register(handle, select.EPOLLIN)

    def forget(self, folder: Path) -> None:
        """The folder is being removed; the kernel ends its watch by itself."""
        with self._lock:
            bells = self._folders.pop(folder, None)
        if bells is not None:
            _ring(bells, state=True)

    def counts(self, folder: Path) -> tuple[int, int]:
        """How often the log and the state of a job have changed: what `wait` compares with."""
        with self._lock:
            bells = self._folders.get(folder)
        return (0, 0) if bells is None else (bells.log, bells.state)

    def wait(self, folder: Path, counts: tuple[int, int], seconds: float) -> None:
        """Return when log or state have changed since `counts`, at the latest after `seconds`."""
        self._wait(folder, lambda bells: (bells.log, bells.state) != counts, seconds)

    def wait_state(self, folder: Path, count: int, seconds: float) -> None:
        """Return when the state has changed since `count`, at the latest after `seconds`."""
        self._wait(folder, lambda bells: bells.state != count, seconds)

    def wait_news(self, count: int, seconds: float) -> int:
        """Return how often any state has changed, when that is more than `count` or after `seconds`."""
        with self._told:
            self._told.wait_for(lambda: self._news != count, seconds)
            return self._news

    def _wait(self, folder: Path, happened: Callable[[_Bells], bool], seconds: float) -> None:
        with self._lock:
            bells = self._folders.get(folder)
        bells = bells or _Bells(folder)
        with bells.changed:
            bells.changed.wait_for(lambda: happened(bells), seconds)

    def _listen(self) -> None:
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._notify:
                    self._read_events(os.read(self._notify, _BUFFER))
                else:
                    self._end_process(descriptor)

    def _read_events(self, data: bytes) -> None:
        position = 0
        states = False
        while position < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, position)
            start, position = position + _EVENT.size, position + _EVENT.size + length
            name = data[start:position].rstrip(b"\0").decode("utf-8", "replace")
            with self._lock:
                bells = self._watches.pop(watch, None) if mask & _IGNORED else self._watches.get(watch)
            if bells is None:
                continue
            is_log = name == LOG and bool(mask & _MODIFY)
            if is_log or name == STATE or mask & (_DELETED | _IGNORED):
                _ring(bells, state=not is_log)
                states = states or not is_log
        if states:
            self._tell()

    def _end_process(self, handle: int) -> None:
        with self._lock:
            self._poll.unregister(handle)
            self._handles.pop(handle)
            os.close(handle)
        self._tell()

    def _tell(self) -> None:
        with self._told:
            self._news += 1
            self._told.notify_all()


def _ring(bells: _Bells, *, state: bool) -> None:
    with bells.changed:
        if state:
            bells.state += 1
        else:
            bells.log += 1
        bells.changed.notify_all()
