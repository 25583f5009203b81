"""`riseml pool check`: find problems of hosts with which the pool cannot work. Each finding is one line."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from riseml import wire
from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import Network
from riseml.executors.base import Executor
from riseml.executors.capabilities import Finding, HostCheck, Outcome
from riseml.model import Mount
from riseml.server.hosts.encryption import check_encryption
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.swarm_ids import find_swarms

_TOKEN = ".riseml-check"  # the file that one host writes and the others read
_UNKNOWN = Finding("check", Outcome.NOTE, "this kind of host cannot be checked")


@dataclass(frozen=True, slots=True)
class _Checked:
    """A host with its report."""

    name: HostName
    host: HostCheck | None  # None: it did not answer, or cannot be checked
    findings: tuple[Finding, ...]
    managers: frozenset[str] = frozenset()  # ids of managers of its Docker Swarm; empty: none
    leaderless: bool = False  # it manages that swarm, which has no leader now
    kernel: str = ""  # release of its kernel; empty: not known


def check_pool(hosts: HostSet) -> list[wire.PoolFinding]:
    """Return every finding: each host alone, then what the hosts share. The hosts are checked in parallel."""
    executors = sorted(hosts.pool.executors.items())
    with ThreadPoolExecutor(max(1, len(executors)), thread_name_prefix="check") as workers:
        checked = list(workers.map(lambda pair: _check_host(*pair), executors))
    findings = [(report.name, finding) for report in checked for finding in report.findings]
    reached = [(report.name, report.host) for report in checked if report.host is not None]
    if hosts.network is Network.OVERLAY:
        swarms = find_swarms({report.name: report.managers for report in checked if report.host is not None})
        findings += compare_swarms(swarms, frozenset(report.name for report in checked if report.leaderless))
        kernels = {report.name: report.kernel for report in checked}
        findings += [(name, check_encryption(host, kernels[name], encrypted=hosts.encrypted)) for name, host in reached]
    findings += check_storage(hosts.find_mounts(), reached, shared=hosts.shared_output)
    return show_findings(judge_findings(hosts, findings))


def judge_findings(hosts: HostSet, findings: Iterable[tuple[HostName, Finding]]) -> list[tuple[HostName, Finding]]:
    """Return findings as they count on this server: some are errors where users do not trust each other."""
    rules = hosts.rules
    return [(name, finding if rules is None else rules.judge_finding(finding)) for name, finding in findings]


def list_answering(hosts: HostSet) -> list[tuple[HostName, HostCheck]]:
    """Return the hosts that answered the last time, and can be checked."""
    last_seen = hosts.last_seen()
    return [
        (name, executor.capabilities.check)
        for name, executor in sorted(hosts.pool.executors.items())
        if name in last_seen and last_seen[name].silent_since is None and executor.capabilities.check is not None
    ]


def show_findings(findings: Iterable[tuple[HostName, Finding]]) -> list[wire.PoolFinding]:
    """Return findings in the shape of the HTTP API."""
    return [
        {"host": name, "topic": finding.topic, "outcome": finding.outcome.value, "message": finding.message}
        for name, finding in findings
    ]


def compare_swarms(
    swarms: dict[HostName, str], leaderless: frozenset[HostName] = frozenset()
) -> Iterator[tuple[HostName, Finding]]:
    """Yield one finding for each host: is it in the swarm that most hosts are in, and has that a leader?

    Args:
        swarms: the id of the swarm of each host; empty: it is in none.
        leaderless: the hosts that manage a swarm without a leader.
    """
    ids = [swarm for swarm in swarms.values() if swarm]
    most = max(ids, key=ids.count, default="")
    for name, swarm in swarms.items():
        message = "in the pool's swarm" if swarm == most else "in another swarm than the others"
        if not swarm:
            message = "in no swarm, so that no gang spans it and other hosts; `riseml pool join` makes one"
        if name in leaderless:
            message = (
                "manages a swarm that has no leader: more than half of its managers must answer, so that no gang can"
                " start across hosts; start the others, or `riseml pool recover`"
            )
        is_right = swarm and swarm == most and name not in leaderless
        yield name, Finding("swarm", Outcome.OK if is_right else Outcome.FAILED, message)


def _check_host(name: HostName, executor: Executor) -> _Checked:
    check = executor.capabilities.check
    if check is None:
        return _Checked(name, None, (_UNKNOWN,))
    try:
        report = check.check_host()
    except RisemlError as error:
        return _Checked(name, None, (Finding("connection", Outcome.FAILED, error.message),))
    return _Checked(name, check, report.findings, report.managers, report.leaderless, report.kernel)


def check_storage(
    mounts: tuple[Mount, tuple[Mount, ...]], reached: list[tuple[HostName, HostCheck]], *, shared: bool
) -> Iterator[tuple[HostName, Finding]]:
    """Check that each host has what jobs mount, and that all hosts read what the first one writes.

    Args:
        mounts: the root of outputs, and what else jobs mount.
        reached: the hosts; those that answer.
        shared: every host must see the same outputs.
    """
    root, other_mounts = mounts
    token = uuid.uuid4().hex.encode()
    for name, host in reached:
        for mount in other_mounts:
            yield name, _check_data(host, mount)
    for name, host in reached[:1]:
        yield name, _write_token(host, root, token)
        private = _check_privacy(host, root)
        if private is not None:
            yield name, private
    for name, host in reached[1:] if shared else ():
        yield name, _read_token(host, root, token, reached[0][0])


def _check_data(host: HostCheck, mount: Mount) -> Finding:
    try:
        host.read_file(mount, _TOKEN)
    except RisemlError as error:
        return Finding("data", Outcome.FAILED, _with_hint(error))
    return Finding("data", Outcome.OK, f"{mount.source} is there")


def _write_token(host: HostCheck, root: Mount, token: bytes) -> Finding:
    try:
        host.write_file(root, _TOKEN, token)
    except RisemlError as error:
        return Finding("output", Outcome.FAILED, _with_hint(error))
    return Finding("output", Outcome.OK, f"{root.source} can be written")


def _check_privacy(host: HostCheck, root: Mount) -> Finding | None:
    try:
        return host.check_privacy(root, _TOKEN)
    except RisemlError:  # the same error as when writing the token
        return None


def _read_token(host: HostCheck, root: Mount, token: bytes, writer: HostName) -> Finding:
    try:
        content = host.read_file(root, _TOKEN)
    except RisemlError as error:
        return Finding("output", Outcome.FAILED, _with_hint(error))
    if content != token:
        message = f"{root.source} is not the storage that {writer} writes: mount the same one there"
        return Finding("output", Outcome.FAILED, message)
    return Finding("output", Outcome.OK, f"reads in {root.source} what {writer} writes there")


def _with_hint(error: RisemlError) -> str:
    return error.message if error.hint is None else f"{error.message} ({error.hint})"
