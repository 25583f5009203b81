"""`riseml pool add`: check a host from its key to its storage, and write it into pool.yml if it fits.

Nothing changes before everything was checked: the host's key is pinned, the swarm joined and the file written at the
end, in this order. A host that is refused leaves nothing behind.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

from riseml import wire
from riseml.base.errors import Conflict, EngineError, Refused, RisemlError, Unreachable, UsageError
from riseml.base.names import LOCAL_HOST, HostName
from riseml.base.records import dataclass
from riseml.base.settings import DOCKER
from riseml.base.states import Network
from riseml.executors.base import Executor
from riseml.executors.capabilities import Finding, HostCheck, HostReport, Outcome
from riseml.model import HostObservation
from riseml.server.hosts.checkup import check_storage, judge_findings, list_answering, show_findings
from riseml.server.hosts.encryption import check_encryption
from riseml.server.hosts.host_keys import find_address, pin_host_keys, scan_new_host
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import LocalMode, PoolMode, choose_network, shares_output
from riseml.server.hosts.pool_edit import rewrite_pool_file
from riseml.server.hosts.storage_mounts import find_mounts
from riseml.server.hosts.swarm_members import show_members
from riseml.spec.pool.file_edit import HostEntry, UneditableFile, add_host, show_entry
from riseml.spec.pool.loader import check_pool
from riseml.spec.pool.types import HostSpec, PoolSpec
from riseml.spec.yaml.problems import Severity

_KEYS = ("name", "url", "address", "gpus", "labels", "cpus", "mem", "identity", "insecure")  # as they are in pool.yml
_PEM = ("ca", "cert", "key")
_PAUSES = (0.3, 1.0)  # seconds before a host that did not answer is asked again


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host to add, and the pool with this host in it."""

    entry: HostEntry
    pool: PoolSpec
    host: HostSpec


@dataclass(frozen=True, slots=True)
class Fitness:
    """The properties of a candidate that answered."""

    engine: str  # `Docker 26.1.5`
    host: HostObservation
    findings: tuple[tuple[HostName, Finding], ...]


def admit_host(hosts: HostSet, new: wire.NewHost, jobs: Mapping[HostName, Sequence[str]]) -> wire.AddedHost:
    """Check a host, and add it unless its key is not trusted yet or this is a dry run.

    Args:
        hosts: the hosts of the server.
        new: the user's entry for the host.
        jobs: the IDs of the jobs on each host.

    Raises:
        UsageError: the entry is wrong, or pool.yml would have a problem with it.
        Conflict: the pool has a host of this name or engine, or the host shows another key than the user trusts.
        Refused: a check fails.
        Unreachable: the host, or its engine, does not answer.
    """
    candidate = propose_host(hosts, new)
    if not new.get("force"):
        refuse_to_strand(hosts, candidate, jobs)
    trusted = frozenset(new.get("fingerprints", ()))
    with _temporary_pins(candidate.host, hosts, trusted) as (trial, keys):
        if keys is not None and not trusted and all(key["pinned"] != "yes" for key in keys["keys"]):
            return _show_candidate(hosts, candidate, "untrusted", keys)
        with hosts.try_host(trial) as executor:
            fitness = examine_host(hosts, candidate, executor)
            if not new.get("force"):
                refuse_unfit(candidate.host.name, fitness.findings)
            added_host = _show_candidate(hosts, candidate, "fit", keys, fitness)
            if new.get("dry_run"):
                return added_host
            members = _join_swarm(hosts, candidate, executor)
    if trusted:
        pin_host_keys(candidate.host, hosts.settings.home, trusted)
    rewrite_pool_file(hosts.settings.pool_file, lambda text: _add_to_text(hosts.settings.pool_file, text, candidate))
    return {**added_host, "state": "added", "members": members}


def propose_host(hosts: HostSet, new: wire.NewHost) -> Candidate:
    """Return a candidate: the host, and the pool with it.

    Raises:
        UsageError, Conflict: as `admit_host`.
    """
    entry = {key: new[key] for key in _KEYS if key in new}  # type: ignore[literal-required]  # the keys of NewHost
    if "tls" in new:
        entry["tls"] = {name: str(Path(new["tls"]) / f"{name}.pem") for name in _PEM}
    path = hosts.settings.pool_file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    candidate = _propose_in(path, text, entry)
    address = "" if "address" in new else find_address(candidate.host, hosts.settings.home)
    return _propose_in(path, text, {**entry, "address": address}) if address else candidate


def _propose_in(path: Path, text: str, entry: HostEntry) -> Candidate:
    """Return a candidate: the host, and the pool of this text with it."""
    name = str(entry["name"])
    if text.strip():
        _refuse_known(path, text, entry)
    try:
        fresh = add_host(text, entry)
    except UneditableFile as error:
        hint = f"add it by hand:\n{show_entry(entry)}"
        raise UneditableFile(f"{path} is written so that riseml cannot add a line: {error.message}", hint) from error
    checked = check_pool(fresh, path)
    for problem in checked.problems:
        if problem.severity is Severity.ERROR:
            message = f"host {name} cannot be added: {problem.path}: {problem.problem}"
            raise UsageError(message, problem.hint or None)
    pool = cast(PoolSpec, checked.spec)
    return Candidate(entry, pool, next(host for host in pool.hosts if host.name == name))


def _refuse_known(path: Path, text: str, entry: HostEntry) -> None:
    """Refuse a name or an engine that the pool has already; the file may have changed since the server read it."""
    spec = check_pool(text, path).spec
    if spec is None:
        raise UsageError(f"{path} has problems, so that no host can be added", "`riseml pool` names them")
    for host in spec.hosts:
        if host.name == entry["name"]:
            hint = f"choose another name, or `riseml pool remove {host.name}` first"
            raise Conflict(f"the pool has a host {host.name} already, at {host.url}", hint)
        if host.url == entry["url"]:
            raise Conflict(f"the pool has this engine already, as host {host.name}", "one name is enough")


def examine_host(hosts: HostSet, candidate: Candidate, executor: Executor) -> Fitness:
    """Read all facts of a candidate that the pool needs.

    Raises:
        Unreachable: it does not answer.
    """
    name = candidate.host.name
    mode = PoolMode(candidate.pool)
    checked = cast(HostCheck, executor.capabilities.check)
    report = ask_patiently(checked)
    findings = [(name, finding) for finding in report.findings]
    if choose_network(mode) is Network.OVERLAY:
        findings.append((name, check_encryption(checked, report.kernel, encrypted=candidate.pool.encrypted)))
    shared = shares_output(mode)
    answering = list_answering(hosts) if isinstance(hosts.mode, PoolMode) else []
    findings += ((name, finding) for finding in find_twins(report.engine, answering))
    reached = [*(answering[:1] if shared else ()), (name, checked)]
    findings += check_storage(find_mounts(mode, hosts.settings), reached, shared=shared)
    observed_host = executor.observe(frozenset())
    return Fitness(executor.describe(), observed_host, tuple(judge_findings(hosts, findings)))


def ask_patiently(host: HostCheck) -> HostReport:
    """Return the report of a host; ask again when it does not answer.

    ssh prints why the engine's socket cannot be opened a moment after the connection broke, so that only the next
    failure contains its message.

    Raises:
        Unreachable: it does not answer.
        EngineError: its engine refuses.
    """
    for pause in _PAUSES:
        try:
            return host.check_host()
        except EngineError:
            raise
        except Unreachable:
            threading.Event().wait(pause)
    return host.check_host()


def find_twins(engine: str, hosts: list[tuple[HostName, HostCheck]]) -> Iterator[Finding]:
    """Yield a finding for each host whose engine has this id; the server would remove what the other one started."""
    for name, host in hosts:
        with suppress(RisemlError):  # the host has become silent; `pool check` reports that
            if engine and host.check_host().engine == engine:
                message = f"it is the engine of {name} under another address"
                yield Finding("connection", Outcome.FAILED, message)


def refuse_to_strand(hosts: HostSet, candidate: Candidate, jobs: Mapping[HostName, Sequence[str]]) -> None:
    """Refuse a first pool.yml that leaves out the machine on which jobs run.

    Raises:
        Refused: with the jobs.
    """
    names = {host.name for host in candidate.pool.hosts}
    left = [job for host, ids in jobs.items() if host not in names for job in ids]
    if left and isinstance(hosts.mode, LocalMode):
        hint = "add the host when they have ended, or with --force, which loses them"
        if hosts.executor_name == DOCKER:
            hint = f"`riseml pool add {LOCAL_HOST} {hosts.settings.engine}` first keeps this machine in the pool"
        raise Refused(f"jobs run on this machine, which the pool would not have: {', '.join(left[:5])}", hint)


def refuse_unfit(name: HostName, findings: tuple[tuple[HostName, Finding], ...]) -> None:
    """Refuse a host that failed a check.

    Raises:
        Refused: with every failure.
    """
    failed = [(host, finding) for host, finding in findings if finding.outcome is Outcome.FAILED]
    if failed:
        sentences = "; ".join(
            f"{'' if host == name else f'{host}: '}{finding.topic}: {finding.message}" for host, finding in failed
        )
        raise Refused(f"host {name} does not fit: {sentences}", "mend that and try again; `--force` adds it anyway")


def _join_swarm(hosts: HostSet, candidate: Candidate, executor: Executor) -> list[wire.PoolMember]:
    """Make a candidate a member of the pool's swarm, where the pool has one."""
    if choose_network(PoolMode(candidate.pool)) is not Network.OVERLAY:
        return []
    return show_members(hosts.swarm.join(executor))


def _add_to_text(path: Path, text: str, candidate: Candidate) -> str:
    """Return the text with the candidate added; the text may be newer than the checked one."""
    _propose_in(path, text, candidate.entry)
    return add_host(text, candidate.entry)


@contextmanager
def _temporary_pins(
    host: HostSpec, hosts: HostSet, trusted: frozenset[str]
) -> Iterator[tuple[HostSpec, wire.HostKeys | None]]:
    """Give the host with temporarily pinned keys, and the keys that it shows. Nothing stays pinned.

    A host that is reached through another one shows no keys here, so that its key has to be pinned already.
    """
    home = hosts.settings.home
    keys = scan_new_host(host, home)
    if keys is None or not trusted:
        yield host, keys
        return
    pinned = Path(keys["known_hosts"])
    with tempfile.TemporaryDirectory(prefix=".trial-", dir=home) as folder:
        trial = replace(host, known_hosts=str(Path(folder) / "known_hosts"))
        if pinned.exists():
            Path(trial.known_hosts or "").write_bytes(pinned.read_bytes())
        pin_host_keys(trial, home, trusted)
        yield trial, keys


def _show_candidate(
    hosts: HostSet,
    candidate: Candidate,
    state: Literal["untrusted", "fit"],
    keys: wire.HostKeys | None,
    fitness: Fitness | None = None,
) -> wire.AddedHost:
    capacity = None if fitness is None else fitness.host.capacity
    return {
        "name": candidate.host.name,
        "state": state,
        "file": str(hosts.settings.pool_file),
        "entry": show_entry(candidate.entry),
        "keys": keys,
        "engine": "" if fitness is None else fitness.engine,
        "cpus": 0.0 if capacity is None else capacity.cpus,
        "mem_mib": 0 if capacity is None else capacity.mem,
        "gpus": 0 if capacity is None else len(capacity.gpus),
        "findings": [] if fitness is None else show_findings(fitness.findings),
        "members": [],
    }
