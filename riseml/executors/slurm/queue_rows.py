"""Parse the output of squeue and sinfo into records, and explain Slurm's reasons in plain words. Pure.

riseml asks for an explicit format (`-o`), because it is the same in every version; the shapes of `--json` change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from riseml.base.records import dataclass
from riseml.model import NodeKind

QUEUE_FORMAT = "%i|%T|%r|%S|%j"
NODE_FORMAT = "%D|%c|%m|%G"
NODE_STATE_FORMAT = "%N|%T|%E"
PARTITION_FORMAT = "%P|%a|%l"

_PENDING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
_ENDED = {
    "BOOT_FAIL": "a node could not be started",
    "CANCELLED": "the job was cancelled in Slurm",
    "COMPLETED": "the job ended without a record of its roles",
    "DEADLINE": "the job's deadline has passed",
    "FAILED": "the job failed without a record of its roles",
    "NODE_FAIL": "a node of the job failed",
    "OUT_OF_MEMORY": "the job ran out of memory",
    "PREEMPTED": "another job preempted it",
    "REVOKED": "the job was revoked",
    "TIMEOUT": "the job reached Slurm's time limit",
}
_REASONS = {
    "Priority": "jobs of higher priority come first",
    "Resources": "the nodes that it needs are not free yet",
    "Dependency": "it depends on another job",
    "BeginTime": "its begin time has not come",
    "JobHeldUser": "its user holds it: `scontrol release` lets it go on",
    "JobHeldAdmin": "an administrator holds it",
    "PartitionNodeLimit": "it asks for more nodes than the partition has or allows, and so never starts",
    "PartitionTimeLimit": "it asks for more time than the partition allows, and so never starts",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition takes no jobs now",
    "QOSMaxCpuPerUserLimit": "you use as many cores as your QOS allows",
    "QOSMaxJobsPerUserLimit": "you run as many jobs as your QOS allows",
    "QOSMaxGRESPerUser": "you use as many GPUs as your QOS allows",
    "QOSGrpCpuLimit": "your QOS uses as many cores as it may",
    "QOSNotAllowed": "your account may not use this QOS",
    "AssocGrpCpuLimit": "your account uses as many cores as it may",
    "AssocGrpGRES": "your account uses as many GPUs as it may",
    "AssocMaxJobsLimit": "your account runs as many jobs as it may",
    "InvalidAccount": "the account is not known to Slurm",
    "InvalidQOS": "the QOS is not known to Slurm",
    "BadConstraints": "no node is as the job asks",
    "Licenses": "it waits for a licence",
    "Reservation": "it waits for its reservation",
    "NodeDown": "a node that it needs is down",
    "ReqNodeNotAvail": "a node that it needs is down or reserved",
    "None": "Slurm has not looked at it yet",
}
_GPU = re.compile(r"gpu:(?:[^:,()]+:)?(\d+)")


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One job of squeue."""

    id: str  # without the index of a component
    state: str
    reason: str
    start: str  # Slurm's estimate or the start; `N/A` without one
    name: str

    @property
    def is_pending(self) -> bool:
        return self.state in _PENDING

    @property
    def has_ended(self) -> bool:
        """Whether Slurm no longer runs any part of it; an unknown state counts as running."""
        return self.state in _ENDED

    @property
    def was_signalled(self) -> bool:
        """Whether Slurm has ended it by signals to its roles, whose exit codes then mean nothing."""
        return self.state in ("CANCELLED", "DEADLINE", "PREEMPTED", "REVOKED", "TIMEOUT")

    @property
    def may_run_on(self) -> bool:
        """Whether Slurm has given up a node without knowing that its processes have ended."""
        return self.state in ("NODE_FAIL", "BOOT_FAIL")


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node of sinfo."""

    name: str
    state: str  # `idle`, `down`, ...; a mark such as `*` (does not answer) stays
    reason: str  # what an administrator or Slurm noted; empty: nothing


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of sinfo."""

    name: str
    is_default: bool
    state: str  # `up`, `down`, `drain` or `inact`
    limit: float | None  # seconds that a job may run at most; None: without end

    @property
    def is_up(self) -> bool:
        """Whether it starts jobs."""
        return self.state == "up"


def parse_queue(text: str) -> list[QueueRow]:
    """Return the jobs of `squeue -h -o QUEUE_FORMAT`; of a heterogeneous job the component that is furthest behind."""
    rows: dict[str, QueueRow] = {}
    for line in text.splitlines():
        parts = line.split("|", 4)
        if len(parts) != 5:
            continue
        row = QueueRow(parts[0].partition("+")[0], *parts[1:])
        previous = rows.get(row.id)
        if previous is None or previous.has_ended or (row.is_pending and not previous.is_pending):
            rows[row.id] = row
    return list(rows.values())


def parse_nodes(text: str) -> tuple[NodeKind, ...]:
    """Return the kinds of nodes of `sinfo -h -o NODE_FORMAT`, the largest first."""
    counts: dict[tuple[int, int, int], int] = {}
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) != 4 or not parts[0].isdecimal():
            continue
        cpus, mem = (int(re.sub(r"\D", "", part) or "0") for part in parts[1:3])
        size = cpus, mem, sum(map(int, _GPU.findall(parts[3])))
        counts[size] = counts.get(size, 0) + int(parts[0])
    kinds = (NodeKind(count, *size) for size, count in counts.items())
    return tuple(sorted(kinds, key=lambda kind: (kind.gpus, kind.mem, kind.cpus), reverse=True))


def parse_node_states(text: str) -> list[NodeState]:
    """Return the nodes of `sinfo -h -N -o NODE_STATE_FORMAT`, each once."""
    rows = (line.split("|", 2) for line in text.splitlines())
    states = {row[0]: NodeState(row[0], row[1], "" if row[2] == "none" else row[2]) for row in rows if len(row) == 3}
    return list(states.values())


def parse_partitions(text: str) -> list[PartitionRow]:
    """Return the partitions of `sinfo -h -o PARTITION_FORMAT`."""
    rows = (line.split("|") for line in text.splitlines())
    return [
        PartitionRow(row[0].rstrip("*"), row[0].endswith("*"), row[1], _read_limit(row[2]))
        for row in rows
        if len(row) == 3
    ]


def _read_limit(text: str) -> float | None:
    """Return the seconds of `1-12:00:00`, `1:30:00` or `5:00`; None for `infinite` and other texts."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds


def describe_waiting(row: QueueRow) -> str:
    """Return why a job waits, in plain words: `Slurm job 12 waits: jobs of higher priority come first (Priority)`."""
    word = row.reason.split(",")[0].strip()
    plain = _REASONS.get(word)
    why = f"{plain} ({row.reason})" if plain else row.reason
    start = f"; Slurm expects to start it at {row.start}" if row.start not in ("N/A", "") else ""
    return f"Slurm job {row.id} waits: {why}{start}"


def describe_end(rows: Iterable[QueueRow], job: str) -> str:
    """Return why a job without a record of its end is over."""
    row = next((candidate for candidate in rows if candidate.id == job), None)
    if row is None:
        return f"Slurm does not know job {job} any more, and it left no record of its end"
    return f"Slurm job {job} is over: {_ENDED.get(row.state, row.state)} ({row.state})"
