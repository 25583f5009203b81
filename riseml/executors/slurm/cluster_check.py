"""`riseml pool check` for a Slurm cluster: the commands, the nodes, and the shared folder as each idle node sees it."""

from __future__ import annotations

import os
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path

from riseml.errors import RisemlError
from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.spec.pool.types import SlurmSpec

_TOKEN = ".riseml-check"


def check_cluster(settings: SlurmSpec, commands: SlurmCommands) -> Iterator[Finding]:
    """Yield the findings of a cluster.

    Raises:
        Unreachable: Slurm does not answer.
    """
    nodes = commands.list_nodes(settings.partition)
    where = f"partition {settings.partition}" if settings.partition else "all partitions"
    count = sum(node.count for node in nodes)
    message = f"{commands.read_version()}, {count} nodes in {where}"
    yield Finding("slurm", Outcome.OK if nodes else Outcome.FAILED, message)
    token = uuid.uuid4().hex
    folder = Path(settings.folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / _TOKEN).write_text(token)
    except OSError as error:
        yield Finding("folder", Outcome.FAILED, f"{folder} cannot be written here: {error.strerror}")
        return
    yield from _check_nodes(settings, commands, token)


def _check_nodes(settings: SlurmSpec, commands: SlurmCommands, token: str) -> Iterator[Finding]:
    """Run a short command on every idle node, and compare what it sees."""
    idle = commands.count_idle_nodes(settings.partition)
    if not idle:
        yield Finding("nodes", Outcome.NOTE, "no node is idle, so that none could be asked what it sees")
        return
    file = shlex.quote(f"{settings.folder}/{_TOKEN}")
    python = shlex.quote(settings.python)
    script = f'echo "riseml|$SLURMD_NODENAME|$(id -u)|$(cat {file} 2>&1)|$({python} -c "print(1)" 2>&1)"'
    try:
        answers = commands.ask_nodes(script, idle, settings)
    except RisemlError as error:
        yield Finding("nodes", Outcome.FAILED, f"no job can be started: {error.message}")
        return
    problems = [problem for answer in answers for problem in _find_problems(answer, token, settings)]
    for problem in problems:
        yield Finding("nodes", Outcome.FAILED, problem)
    if not problems:
        yield Finding("nodes", Outcome.OK, f"{len(answers)} idle nodes see {settings.folder}, this user and Python")


def _find_problems(answer: str, token: str, settings: SlurmSpec) -> Iterator[str]:
    """Yield what is wrong with a node, from its line `riseml|n1|1000|TOKEN|1`."""
    parts = answer.split("|")
    if len(parts) != 5:
        return
    _, node, user, seen, python = parts
    if user != str(os.getuid()):
        yield f"node {node}: this user is {user} there and {os.getuid()} here"
    if seen != token:
        yield f"node {node}: {settings.folder} is not the folder that this machine has ({seen[:200]})"
    if python != "1":
        yield f"node {node}: {settings.python} cannot be run ({python[:200]})"
