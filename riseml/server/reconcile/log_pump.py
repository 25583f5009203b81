"""The log pump: one follower thread for each container writes its log into the store, continuously.

A follower always continues from the cursor of the log file. Only a stream that began after the container had ended, and
that ended without an error, proves that the log is complete. Then the follower has the files collected that the job
wrote outside of its output, and ends the log; the job is removed after that. When the log of a job has reached its
limit, its follower stops reading and waits for the job's end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from riseml.base.errors import RisemlError
from riseml.base.faultpoints import Point, reach
from riseml.base.masks import NOTHING_MASKED, Masker
from riseml.base.records import dataclass
from riseml.executors.base import Executor, NotThere, OutputLost
from riseml.executors.logs.frames_after import FramesAfter
from riseml.job_programs.script_shell import read_announcement
from riseml.model import ContainerObservation, Frame, FramePosition, JobKey, LogCursor
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.wake import JointWake, Wake
from riseml.spec.config.types import Shell
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.masked_frames import FrameMasker
from riseml.store.logs.thinned_bars import BarRule, BarThinner

_RETRY_PAUSES = (0.05, 0.2, 1.0, 5.0)  # seconds before the next attempt, after each failure in a row
_QUICK_SUCCESSION = 0.005  # seconds between two pieces of a log that grows without a pause
_STDOUT = 1  # the stream whose first line reports the shell
_PAST_LINES = 50  # that tell how far a job was when an earlier server ended
_OWN_STREAM = 3  # messages that the job did not print
_GATHER = 0.002  # seconds for which the frames of such a log are gathered, so that they are stored as one piece

Collect = Callable[[Executor, JobKey], None]
"""Keeps what a job has written elsewhere, when its log is complete; it raises an error to be called again."""

log = logging.getLogger(__name__)


FindMasker = Callable[[int], Masker | None]
"""Returns what masks the secrets of an experiment; None: it has none."""


def collect_nothing(executor: Executor, key: JobKey) -> None:
    """Keep nothing."""


NoteOutput = Callable[[JobKey, Sequence[Frame]], None]
"""Takes what a job prints, without its secrets, in the order of its log."""


def note_nothing(key: JobKey, frames: Sequence[Frame]) -> None:
    """Take what a job prints, and do nothing."""


def join_readers(*readers: NoteOutput) -> NoteOutput:
    """Return what gives the output of jobs to several readers, one after another."""

    def note_output(key: JobKey, frames: Sequence[Frame]) -> None:
        for reader in readers:
            reader(key, frames)

    return note_output


FindBarRule = Callable[[int], BarRule]
"""Returns which states of progress bars the log of an experiment keeps."""


def keep_last_states(experiment: int) -> BarRule:
    """Keep the last state of each bar."""
    return BarRule.LAST


@dataclass(frozen=True, slots=True)
class OutputReaders:
    """What reads the output of jobs on its way into the store, and what that changes of it."""

    find_masker: FindMasker = lambda experiment: None
    find_bar_rule: FindBarRule = keep_last_states
    note_output: NoteOutput = note_nothing


NO_READERS = OutputReaders()


class LogPump:
    """All followers, by the ids of their containers. Safe from many threads."""

    def __init__(
        self,
        logs: LogStore,
        notifier: Notifier,
        wake: Wake | JointWake,
        collect: Collect = collect_nothing,
        readers: OutputReaders = NO_READERS,
    ) -> None:
        self._readers = readers
        self._logs = logs
        self._collect = collect
        self._notifier = notifier
        self._wake = wake
        self._lock = threading.Lock()
        self._followers: dict[str, _LogFollower] = {}

    def follow_container(self, executor: Executor, container: ContainerObservation) -> bool:
        """Start a follower if the container has none.

        Returns:
            True when the container has ended, the store holds its whole log, and its files are collected.
        """
        if not container.started:
            return True
        with self._lock:
            follower = self._followers.get(container.id)
            if follower is None:
                follower = _LogFollower(
                    executor,
                    container.key,
                    (self._logs, self._notifier, self._wake),
                    self._collect,
                    self._readers,
                )
                self._followers[container.id] = follower
                follower.start()
            follower.executor = executor  # a new one after a change of pool.yml, which closes the old one
        if not container.running:
            follower.ended.set()
        return follower.drained.is_set()

    def find_shell(self, container: ContainerObservation) -> Shell | None:
        """Return the shell that the job of a container has reported since its follower started; None: none yet."""
        with self._lock:
            follower = self._followers.get(container.id)
        return None if follower is None else follower.shell

    def count_lines(self) -> dict[JobKey, int]:
        """Return how many lines came from each followed job since its follower started; a long line counts as several.

        The numbers begin again when the server starts again.
        """
        with self._lock:
            return {follower.key: follower.lines for follower in self._followers.values()}

    def list_followed(self) -> frozenset[JobKey]:
        """Return the jobs whose logs are followed."""
        with self._lock:
            return frozenset(follower.key for follower in self._followers.values())

    def drop_followers(self, present: frozenset[str]) -> None:
        """Drop the followers of all containers but these."""
        with self._lock:
            for identity in [identity for identity in self._followers if identity not in present]:
                self._followers.pop(identity).drop()


class _LogFollower(threading.Thread):
    """Reads one container's log until the store holds all of it, or until the pump drops the follower."""

    def __init__(
        self,
        executor: Executor,
        key: JobKey,
        ends: tuple[LogStore, Notifier, Wake | JointWake],
        collect: Collect,
        readers: OutputReaders,
    ) -> None:
        super().__init__(name=f"log-{key.experiment}-{key.job}-{key.attempt}", daemon=True)
        self.executor = executor  # executor of the container's host; the pump replaces it when pool.yml changes
        self.ended = threading.Event()  # the container has ended
        self.drained = threading.Event()  # the store holds the whole log
        self._dropped = threading.Event()  # the container is not on its host any more
        self.key = key
        self.shell: Shell | None = None  # that the job has reported
        self.lines = 0  # pieces of output so far; a piece is a line, or a part of a long one
        self._logs, self._notifier, self._wake = ends
        self._collect = collect
        self._find_masker = readers.find_masker
        self._note_output = readers.note_output
        self._noted: dict[int, FramePosition] = {}  # by stream, up to where `note_output` has the frames
        self._has_shown_past = False  # `note_output` has the last lines that an earlier server stored
        self._thinned = BarThinner(readers.find_bar_rule(key.experiment))
        self._masked = FrameMasker()
        self._may_lag = (
            True  # frames may have been held back when the log was read before, by this server or another one
        )
        self._problem = ""  # why the log could not be read the last time; empty: it could

    def drop(self) -> None:
        """End without further writes; when the loop sees the container again, another follower continues."""
        self.ended.set()
        self._dropped.set()

    def run(self) -> None:
        failures = 0
        while not self.drained.is_set():
            last = self._dropped.is_set()
            final = self.ended.is_set()
            failures = 0 if self._try_read(final=final) else failures + 1
            if last:
                return
            if failures or not final:  # once the container has ended, its end no longer shortens a pause
                (self._dropped if final else self.ended).wait(_RETRY_PAUSES[min(failures, len(_RETRY_PAUSES) - 1)])

    def _try_read(self, *, final: bool) -> bool:
        """Read once from the cursor on. No error ends the thread: without the thread the container would never be
        drained.

        Returns:
            False when it failed.
        """
        try:
            is_gone = self._read_frames(follow=not final)
            if is_gone or (final and not self._dropped.is_set()):
                self._finish_log()
        except (RisemlError, OSError) as error:
            self._note_problem(str(error))
            return False
        except Exception:
            log.exception("the log of %s cannot be read now, and is read again", self._title)
            return False
        self._problem = ""
        return True

    @property
    def _title(self) -> str:
        return f"#{self.key.experiment}.{self.key.job} a{self.key.attempt} on {self.executor.name}"

    def _note_problem(self, problem: str) -> None:
        """Log why the log cannot be read, once for each cause: a host that is away is asked every few seconds."""
        if problem != self._problem:
            log.warning("the log of %s cannot be read now, and is read again: %s", self._title, problem)
        self._problem = problem

    def _read_frames(self, *, follow: bool) -> bool:
        """Store the frames after the cursor; when the log has reached its limit, wait for the container's end.

        Returns:
            True when the container is gone, so that no more frames come.
        """
        last = 0.0
        if self._logs.is_job_full(self.key):
            if follow:
                self.ended.wait()
            return False
        cursor = self._find_cursor()
        self._thinned.forget(frozenset(stream for stream, place in cursor.positions.items() if place.goes_on))
        self._show_past(cursor)
        unread = FramesAfter(LogCursor(self._noted))
        lacks_shell = _STDOUT not in cursor.positions
        try:
            for frames in self.executor.read_log(self.key, cursor, follow=follow):
                if self._dropped.is_set():
                    return False
                if lacks_shell:
                    lacks_shell = not self._note_shell(frames)
                reach(Point.LOG_READ)
                self._take_frames(self._mask_frames(frames), unread)
                if self._logs.is_job_full(self.key):
                    return False
                now = time.monotonic()
                if follow and now < last + _QUICK_SUCCESSION:
                    self.ended.wait(_GATHER)
                last = now
            self._may_lag = self._masked.holds_frames
            if not follow:
                self._flush_frames(unread)
        except NotThere as error:
            self._note_gone(error, unread)
            return True
        return False

    def _show_past(self, cursor: LogCursor) -> None:
        """Give the last lines that an earlier server has stored to what reads the output."""
        if not self._has_shown_past and cursor.positions:
            lines = self._logs.read_last_lines(self.key, _PAST_LINES)
            self._note_output(self.key, [Frame(line.at, line.stream, line.text + b"\n") for line in lines])
        self._has_shown_past = True

    def _note_gone(self, error: NotThere, unread: FramesAfter) -> None:
        """Store what is held back, and a note where the host has lost a part of the log."""
        self._flush_frames(unread)
        log.warning("the log of %s is not complete: %s", self._title, error.message)
        if isinstance(error, OutputLost):
            note = f"[riseml: lines are missing here: {error.message}]\n"
            self._logs.append_frames(self.key, [Frame("", _OWN_STREAM, note.encode())])

    def _find_cursor(self) -> LogCursor:
        """Return where the reading goes on. Frames that were held back come again."""
        cursor = self._logs.find_cursor(self.key)
        lags = self._may_lag and self._find_masker(self.key.experiment) is not None
        self._masked.forget()
        self._may_lag = True  # until this read ends without an error
        return replace(cursor, lags=True) if lags else cursor

    def _mask_frames(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Return the frames that may be stored, without the secrets of the experiment."""
        masker = self._find_masker(self.key.experiment)
        if masker is None and not self._masked.holds_frames:
            return frames
        return self._masked.mask_frames(frames, masker or NOTHING_MASKED)

    def _flush_masked(self) -> Sequence[Frame]:
        if not self._masked.holds_frames:
            return ()
        return self._masked.flush(self._find_masker(self.key.experiment) or NOTHING_MASKED)

    def _flush_frames(self, unread: FramesAfter) -> None:
        """Store what is held back: the log has ended."""
        self._take_frames(self._flush_masked(), unread)
        self._store_frames(self._thinned.flush())

    def _take_frames(self, frames: Sequence[Frame], unread: FramesAfter) -> None:
        """Store frames, of each progress bar its last state alone, and give what is new of them to who reads them.

        Args:
            frames: without secrets.
            unread: keeps the frames that came for the first time; those that were not stored come again.
        """
        new_frames = unread.keep_new(frames)
        if new_frames:
            self.lines += len(new_frames)
            self._note_output(self.key, new_frames)
            self._advance_noted(new_frames)
        self._store_frames(self._thinned.thin_frames(frames))

    def _advance_noted(self, frames: Sequence[Frame]) -> None:
        for stream in {frame.stream for frame in frames}:
            stamps = [frame.at for frame in frames if frame.stream == stream and frame.at]
            if stamps:
                count = sum(1 for _ in takewhile(stamps[-1].__eq__, reversed(stamps)))
                before = self._noted.get(stream)
                goes_on = before is not None and before.at == stamps[-1] and count == len(stamps)
                earlier = before.frames_held if goes_on and before is not None else 0
                self._noted[stream] = FramePosition(stamps[-1], count + earlier)

    def _store_frames(self, frames: Sequence[Frame]) -> None:
        if frames:
            self._logs.append_frames(self.key, frames)
            self._notifier.publish_lines(self.key.experiment)

    def _note_shell(self, frames: Sequence[Frame]) -> bool:
        """Note the shell that the first line of stdout reports; a line of stderr may come before it. Return False when
        these frames have no line of stdout.
        """
        first = next((frame for frame in frames if frame.stream == _STDOUT), None)
        if first is None:
            return False
        name = read_announcement(first.data)
        self.shell = None if name is None else Shell(name)
        return True

    def _finish_log(self) -> None:
        self._collect(self.executor, self.key)
        self._logs.finish_job(self.key)
        self.drained.set()
        self._notifier.publish_records(self.key.experiment)
        self._wake.set()
