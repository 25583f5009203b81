"""Ask Slurm about all jobs of a server: with one call, rarely, and outside of the control loop."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

from riseml.base.errors import RisemlError
from riseml.base.records import dataclass
from riseml.executors.slurm.queue_rows import QueueRow
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.model import NodeKind

_BETWEEN = 2.0  # seconds between two calls of squeue
_LONGEST = 30.0  # seconds between two calls while the controller does not answer
_NODES_BETWEEN = 60.0  # seconds between two calls of sinfo

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The jobs and the nodes as Slurm last reported them."""

    rows: tuple[QueueRow, ...]
    nodes: tuple[NodeKind, ...]
    asked_at: float  # when it was asked, by the clock that only grows
    trouble: str = ""  # why Slurm did not answer the last time; empty: it did

    def find(self, name: str, job: str) -> QueueRow | None:
        """Return the job of this id; without an id, the last one of this name."""
        if job:
            return next((row for row in self.rows if row.id == job), None)
        named = [row for row in self.rows if row.name == name]
        return named[-1] if named else None


class JobQueue:
    """squeue and sinfo with pauses in between. A frozen controller blocks a separate thread, but no caller.

    Args:
        commands: the commands of Slurm.
        partition: whose nodes count; empty: all.
    """

    def __init__(self, commands: SlurmCommands, partition: str) -> None:
        self._commands = commands
        self._partition = partition
        self._lock = threading.Lock()
        self._answer: QueueAnswer | None = None
        self._asking = False
        self._next_at = 0.0
        self._nodes_at = 0.0
        self._failures = 0

    def read(self) -> QueueAnswer:
        """Return Slurm's last answer, and ask again in the background when the pause is over. The first call waits.

        Raises:
            Unreachable, EngineError: it has never answered.
        """
        answer = self._answer
        if answer is None:
            return self.ask_now()
        with self._lock:
            due = not self._asking and time.monotonic() >= self._next_at
            self._asking = self._asking or due
        if due:
            threading.Thread(target=self._ask_beside, name="squeue", daemon=True).start()
        return answer

    def ask_now(self) -> QueueAnswer:
        """Ask Slurm now, and return the answer.

        Raises:
            Unreachable, EngineError: it says nothing.
        """
        begun = time.monotonic()
        last = self._answer
        nodes = () if last is None else last.nodes
        if not nodes or begun >= self._nodes_at + _NODES_BETWEEN:
            nodes = self._commands.list_nodes(self._partition)
            self._nodes_at = begun
        answer = self._answer = QueueAnswer(tuple(self._commands.list_jobs()), nodes, begun)
        self._next_at = time.monotonic() + _BETWEEN
        return answer

    def cancel_beside(self, job: str) -> None:
        """Cancel a job in the background. The caller checks later, and calls this again if the job still runs."""
        threading.Thread(target=self._cancel, args=(job,), name="scancel", daemon=True).start()

    def find_stamp(self) -> int:
        """Return a number that changes with Slurm's answer."""
        answer = self._answer
        return 0 if answer is None else hash((answer.rows, answer.trouble))

    def _cancel(self, job: str) -> None:
        try:
            self._commands.cancel(job)
        except RisemlError as error:
            log.warning("Slurm job %s has lost its supervisor, and cannot be cancelled: %s", job, error.message)
        else:
            log.warning("Slurm job %s has lost its supervisor, and is cancelled", job)

    def _ask_beside(self) -> None:
        try:
            self.ask_now()
            self._failures = 0
        except RisemlError as error:
            self._failures += 1
            if self._answer is not None:
                self._answer = replace(self._answer, trouble=error.message)
            self._next_at = time.monotonic() + min(_LONGEST, _BETWEEN * 2 ** min(self._failures, 5))
        finally:
            with self._lock:
                self._asking = False
