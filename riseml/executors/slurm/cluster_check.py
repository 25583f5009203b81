"""`riseml pool check` for a Slurm cluster: the partition, what a job may ask for, the folder as each idle node sees it.

Each finding is one sentence. A problem that stops every job ends the check: the other findings would only repeat it.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from riseml.base.errors import RisemlError
from riseml.base.folders import make_private_path
from riseml.base.records import dataclass
from riseml.executors.capabilities import Finding, HostReport, Outcome
from riseml.executors.slurm.gang_folder import translate_os_errors
from riseml.executors.slurm.job_script import list_site_options
from riseml.executors.slurm.queue_rows import NodeState, PartitionRow
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.model import Mount
from riseml.spec.pool.types import SlurmSpec

_FILE = ".riseml-check-"  # begins the name of the file that the server writes and the nodes read
_PROBE = 1 << 20  # bytes to write: a quota may leave room for an empty file
_FULL = {errno.EDQUOT: "your quota there is used up", errno.ENOSPC: "it is full"}
_WRITES = "writes"  # a node prints this when it could write
_MOST_NAMED = 5  # the most nodes that are named one by one


class _Stuck(Exception):
    """The check found a problem that stops every job, and has reported it."""


@dataclass(frozen=True, slots=True)
class _NodeAnswer:
    """What a node printed: `riseml|n1|1000|ann|TOKEN|writes|1`."""

    node: str
    user: str  # the number of the user on the node
    name: str  # the name of the user on the node
    token: str  # the content that the node reads in the folder
    written: str  # `_WRITES`, else why not
    python: str  # `1`, else why not


@dataclass(frozen=True, slots=True)
class ClusterHostCheck:
    """The checks of a cluster and of its shared folder; an implementation of `HostCheck`."""

    settings: SlurmSpec
    commands: SlurmCommands

    def check_host(self) -> HostReport:
        return HostReport(tuple(ClusterCheck(self.settings, self.commands).run()))

    def read_file(self, mount: Mount, name: str) -> bytes | None:
        with translate_os_errors(mount.source):
            path = Path(mount.source, name)
            return path.read_bytes() if path.exists() else None

    def write_file(self, mount: Mount, name: str, content: bytes) -> None:
        with translate_os_errors(mount.source):
            Path(mount.source).mkdir(parents=True, exist_ok=True)
            Path(mount.source, name).write_bytes(content)

    def check_privacy(self, mount: Mount, name: str) -> Finding | None:
        return None


class ClusterCheck:
    """One check of a cluster.

    Args:
        settings: of the cluster.
        commands: the commands of Slurm.
    """

    def __init__(self, settings: SlurmSpec, commands: SlurmCommands) -> None:
        self._settings = settings
        self._commands = commands
        self._folder = Path(settings.folder)
        self._token = uuid.uuid4().hex
        self._file = self._folder / f"{_FILE}{self._token[:16]}"

    def run(self) -> Iterator[Finding]:
        """Yield the findings."""
        try:
            yield from self._check_cluster()
            yield from self._check_partition()
            yield from self._check_job()
            yield from self._check_folder()
            yield from self._check_nodes()
        except _Stuck:
            return
        except RisemlError as error:
            hint = f" ({error.hint})" if error.hint else ""
            yield Finding("slurm", Outcome.FAILED, f"{error.message}{hint}")
        finally:
            with suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _check_cluster(self) -> Iterator[Finding]:
        version = self._commands.read_version()
        partition = self._settings.partition
        count = sum(node.count for node in self._commands.list_nodes(partition))
        if not count:
            problem = (
                f"partition {partition} is not there, has no nodes, or is hidden from you" if partition else "no nodes"
            )
            yield Finding("slurm", Outcome.FAILED, f"{version}: {problem}; `sinfo` shows what there is")
            raise _Stuck
        where = f"partition {partition}" if partition else "all partitions"
        yield Finding("slurm", Outcome.OK, f"{version}, {count} node{'' if count == 1 else 's'} in {where}")

    def _check_partition(self) -> Iterator[Finding]:
        """Find what `sbatch --test-only` does not: it accepts jobs that never start."""
        row = self._find_partition()
        time_limit = self._settings.time_limit
        if row is None and self._settings.partition:
            return  # Slurm hides it from users who may not use it; the next check says why
        if row is None:
            yield Finding("partition", Outcome.FAILED, "Slurm has no default partition: name one as `partition`")
            raise _Stuck
        if not row.is_up:
            yield Finding("partition", Outcome.FAILED, f"partition {row.name} is {row.state}: it starts no jobs now")
            raise _Stuck
        if time_limit is not None and row.limit is not None and time_limit > row.limit:
            message = (
                f"`time_limit` is {time_limit / 60:.0f} minutes, and partition {row.name} allows {row.limit / 60:.0f}"
            )
            yield Finding("partition", Outcome.FAILED, f"{message}: such a job never starts")
            raise _Stuck

    def _find_partition(self) -> PartitionRow | None:
        """Return the partition of jobs."""
        name = self._settings.partition.split(",")[0]
        rows = self._commands.list_partitions()
        return next((row for row in rows if row.name == name or (not name and row.is_default)), None)

    def _check_job(self) -> Iterator[Finding]:
        try:
            self._commands.try_job(list_site_options(self._settings))
        except RisemlError as error:
            yield Finding("jobs", Outcome.FAILED, error.message)
            raise _Stuck from None
        yield Finding("jobs", Outcome.OK, "Slurm accepts a job with these settings")

    def _check_folder(self) -> Iterator[Finding]:
        try:
            make_private_path(self._folder)
            self._write_file()
        except OSError as error:
            why = _FULL.get(error.errno or 0, error.strerror)
            yield Finding("folder", Outcome.FAILED, f"{self._folder} cannot be written by the server: {why}")
            raise _Stuck from error
        try:
            content = self._commands.read_text(str(self._file))
        except RisemlError as error:
            yield Finding("folder", Outcome.FAILED, f"the login node does not read {self._folder}: {error.message}")
            raise _Stuck from error
        if content != self._token:
            message = f"{self._folder} of the login node is not the folder that the server has: mount the same one"
            yield Finding("folder", Outcome.FAILED, message)
            raise _Stuck
        mode = stat.S_IMODE(self._folder.stat().st_mode)
        if mode & 0o022:
            problem = f"other users may write in {self._folder} (mode {mode:04o}), and could replace what your jobs run"
            yield Finding("folder", Outcome.FAILED, f"{problem}: `chmod go-w {self._folder}`")

    def _write_file(self) -> None:
        """Write the token that the nodes read, after bytes that a full disk or a quota refuses; keep others' files."""
        with self._file.open("xb") as file:
            file.write(bytes(_PROBE))
            file.flush()
            os.fsync(file.fileno())
            file.truncate(0)
            file.seek(0)
            file.write(self._token.encode())

    def _check_nodes(self) -> Iterator[Finding]:
        """Run a short command on every idle node, and compare the results; name the nodes that were not asked."""
        states = self._commands.list_node_states(self._settings.partition)
        idle = [node.name for node in states if node.state == "idle"]
        if idle:
            yield from self._check_idle_nodes(idle)
        other_nodes = [node for node in states if node.state != "idle"]
        if other_nodes:
            yield Finding("nodes", Outcome.NOTE, f"not asked: {_name_nodes(other_nodes)}")

    def _check_idle_nodes(self, nodes: list[str]) -> Iterator[Finding]:
        answers = [answer for line in self._ask(nodes) if (answer := _read_answer(line)) is not None]
        user = self._commands.read_user()
        problems = [problem for answer in answers for problem in self._find_problems(answer, user)]
        answering = {answer.node for answer in answers}
        problems += [f"node {node} gave no answer" for node in nodes if node not in answering]
        yield from (Finding("nodes", Outcome.FAILED, problem) for problem in problems)
        if not problems:
            message = f"all {len(nodes)} idle nodes see {self._folder}, this user and Python"
            yield Finding("nodes", Outcome.OK, message)

    def _ask(self, nodes: list[str]) -> list[str]:
        file = shlex.quote(str(self._file))
        python = shlex.quote(self._settings.python)
        probe = f'{file}."$SLURMD_NODENAME"'
        script = (
            f'echo "riseml|$SLURMD_NODENAME|$(id -u)|$(id -un 2>/dev/null)|$(cat {file} 2>&1)'
            f'|$( (: >{probe} && rm {probe} && echo {_WRITES}) 2>&1)|$({python} -c "print(1)" 2>&1)"'
        )
        try:
            return self._commands.ask_nodes(script, nodes, self._settings)
        except RisemlError as error:
            raise type(error)(f"no job can be started: {error.message}", error.hint) from error

    def _find_problems(self, answer: _NodeAnswer, name: str) -> Iterator[str]:
        where = f"node {answer.node}"
        if answer.name != name:
            identity = f"is {answer.name} there" if answer.name else "has no name there"
            yield f"{where}: user {answer.user} {identity} and {name} here: users need the same IDs on all nodes"
        if answer.token != self._token:
            excerpt = f" ({answer.token[:200]})" if answer.token else ""
            yield f"{where}: {self._folder} is not the folder that the server has{excerpt}: mount the same one there"
        elif answer.written != _WRITES:
            yield f"{where}: {self._folder} cannot be written ({answer.written[:200]})"
        if answer.python != "1":
            yield f"{where}: {self._settings.python} cannot be run ({answer.python[:200]})"


def _read_answer(line: str) -> _NodeAnswer | None:
    parts = line.split("|")
    return _NodeAnswer(*parts[1:]) if len(parts) == 7 else None


def _name_nodes(nodes: list[NodeState]) -> str:
    """Return nodes with their states: `n2 is down (Not responding), n3 is allocated and 7 others`."""
    named = [
        f"{node.name} is {node.state}" + (f" ({node.reason})" if node.reason else "") for node in nodes[:_MOST_NAMED]
    ]
    more = len(nodes) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
