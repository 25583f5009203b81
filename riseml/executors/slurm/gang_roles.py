"""The roles as a gang's supervisor knows them, and the ends that they have reported.

When Slurm ends a job, it signals every process of a step: the command of a role may end before its wrapper and the
supervisor get their signals. So the end that a role reports is not yet a verdict. Slurm first writes into the output of
a step that it ends the step, and then signals the processes of the step; srun ends once the whole output of its step
has arrived. So the supervisor waits for the end of the role's srun, and `find_stop_cause` then knows whether Slurm
caused the end. It settles ends in the order in which they arrived, so that the first failure stays the first.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import subprocess
import time
from typing import Any

from riseml.executors.slurm import gang_lines
from riseml.job_programs import gang_rules

_LATE_SRUN = 10.0  # seconds for srun to end after its role: a process of another user may keep its step


class SupervisedRole:
    """One role: its progress, and its end as far as it is known."""

    def __init__(self, plan: "dict[str, Any]") -> None:
        self.plan = plan
        self.name = plan["role"]  # type: str
        self.srun: subprocess.Popen[bytes] | None = None
        self.lines: gang_lines.LineConnection | None = None
        self.address = ""  # host:port, once it has called
        self.node = ""
        self.began_at = 0.0  # when it started, by a monotonic clock
        self.lost_at = 0.0  # when its connection broke; 0: it did not
        self.silent = False  # its connection fell silent: the role may still run behind a network partition
        self.kill_at = 0.0  # when it gets SIGKILL; 0: it does not have to end
        self.killed = False
        self.end = None  # type: ReportedEnd | None  # as it was reported, or settled without a report
        self.record = {}  # type: dict[str, Any]

    @property
    def ended(self) -> bool:
        return "finished_at" in self.record

    @property
    def srun_ended(self) -> bool:
        """Whether the srun of its step has ended, so that no further output comes."""
        return self.srun is None or self.srun.poll() is not None

    def say(self, message: "dict[str, Any]") -> None:
        """Send a message to its wrapper, if the wrapper is connected."""
        if self.lines is None:
            return
        try:
            self.lines.send(message)
        except OSError:
            self.lose()

    def keep_alive(self) -> None:
        """Send a heartbeat, and check whether the wrapper's heartbeats arrive."""
        if self.lines is None:
            return
        try:
            self.lines.beat()
        except OSError:
            self.lose()
            return
        if self.lines.is_silent():
            self.lose()
            self.silent = True

    def lose(self) -> None:
        """Note that its connection broke."""
        self.close()
        self.lost_at = time.monotonic()

    def close(self) -> None:
        """End its connection, if there is one."""
        if self.lines is not None:
            self.lines.connection.close()
            self.lines = None

    def as_member(self) -> gang_rules.Member:
        """Return it as the rules of gangs see it. An end counts once it is settled."""
        part = self.plan["part"]
        if self.end is None or not self.ended:
            return gang_rules.Member(part, "RUNNING", grace=self.plan["grace"])
        if not gang_rules.fails(part, self.end.code, self.end.error):
            return gang_rules.Member(part, gang_rules.FINISHED, self.end.reported_at)
        return gang_rules.Member(part, gang_rules.KILLED if self.kill_at else gang_rules.FAILED, self.end.reported_at)

    def as_cause(self) -> gang_rules.Member:
        """Return it as the rules see it while they look for a cause: silence is a failure, before its end is known."""
        if self.silent and self.end is None and not self.kill_at:
            return gang_rules.Member(self.plan["part"], gang_rules.FAILED, self.lost_at)
        return self.as_member()


class ReportedEnd:
    """The end of a role, as the role reported it.

    Args:
        role: which.
        code: its exit code.
        error: why it ended, if neither its command nor the supervisor ended it; else empty.
        outside: its wrapper received a signal that the supervisor did not send.
    """

    def __init__(self, role: SupervisedRole, code: int, error: str, outside: bool = False) -> None:  # noqa: FBT001, FBT002  # 3.6 style
        self.role = role
        self.code = code
        self.error = error
        self.outside = outside
        self.at = time.time()  # for the record
        self.reported_at = time.monotonic()

    def is_ready(self) -> bool:
        """Return True when everything that Slurm writes about it has arrived."""
        return self.role.srun_ended or time.monotonic() > self.reported_at + _LATE_SRUN


class ReportedEnds:
    """The ends that are not settled yet, in the order in which they arrived."""

    def __init__(self) -> None:
        self._waiting = []  # type: list[ReportedEnd]

    def add(self, end: ReportedEnd) -> None:
        """Add the one end of a role."""
        end.role.end = end
        self._waiting.append(end)

    def take_ready(self) -> "list[ReportedEnd]":
        """Return the ends that can be settled, up to the first one that cannot."""
        ready = []  # type: list[ReportedEnd]
        while len(ready) < len(self._waiting) and self._waiting[len(ready)].is_ready():
            ready.append(self._waiting[len(ready)])
        del self._waiting[: len(ready)]
        return ready
