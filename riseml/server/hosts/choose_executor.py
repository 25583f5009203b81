"""The choice of an executor by the user, in RISEML_EXECUTOR or in pool.yml, and what that choice rules out."""

from __future__ import annotations

import grp
import logging
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path

from riseml.base.consent import read_consent
from riseml.base.errors import EngineError, Refused, Unreachable, UsageError
from riseml.base.records import dataclass
from riseml.base.settings import DEFAULT_ENGINE, DOCKER, PROCESS, SLURM, Settings
from riseml.executors.base import Executor
from riseml.executors.kinds import HostOpener, check_cluster, connect_local_engine, find_kind
from riseml.model import World
from riseml.server.hosts.mode import read_last_executor
from riseml.server.hosts.pool_file import PoolFile
from riseml.server.hosts.team_rules import TeamRules
from riseml.spec.pool.slurm import make_login_entry
from riseml.spec.pool.types import CLUSTER_FOLDER, EngineKind, HostSpec, PoolSpec, SlurmSpec

_NEEDS_LINUX = ("jobs without Docker need Linux", "start a Docker Engine, and unset RISEML_EXECUTOR")
_OR_PROCESSES = "without Docker, `riseml train --executor process` runs jobs as you, with your files"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LocalChoice:
    """The executor for this machine."""

    executor: Executor
    name: str  # `docker` or `process`, as RISEML_EXECUTOR names it
    note: str = ""  # a sentence for users when jobs run as processes although RISEML_EXECUTOR does not ask for it
    undecided: bool = False  # True when no engine answered, and the user has not chosen processes


def choose_executor(
    settings: Settings, world: World, opener: HostOpener, rules: TeamRules | None = None
) -> LocalChoice:
    """Return the executor that RISEML_EXECUTOR names, else processes when no engine answers and the user agreed to it.

    Without that consent the executor is Docker, whose host stays silent: no job runs outside a container only because
    no engine answers. An open experiment stays with the executor that it was accepted for. A team's server takes no
    processes in place of an engine, unless its rules allow that.

    Raises:
        UsageError: the settings name an executor that cannot run here.
        Refused: a team's server does not run what is open, or does not use this engine.
    """
    name = settings.executor or _find_used_executor(world, settings)
    if name == PROCESS:
        if rules is not None and settings.executor is None:
            rules.check_fallback()
        return _choose_processes(opener, "")
    if rules is not None:
        rules.check_local_engine(settings)
    falls_back = name is None and (rules is None or rules.allows_fallback)
    missing = find_missing_engine(settings) if falls_back else ""
    if missing and read_consent(settings.home).processes:
        note = f"No Docker Engine answers here ({missing}): jobs run as processes, as you, with your files."
        log.info("%s", note)
        return _choose_processes(opener, note)
    return LocalChoice(opener.open_local_engine(), DOCKER, undecided=bool(missing))


def find_missing_engine(settings: Settings) -> str:
    """Return why no engine answers where processes could take its place; empty when one answers.

    Processes never replace an engine that DOCKER_HOST names.
    """
    if settings.engine != DEFAULT_ENGINE or sys.platform != "linux":
        return ""
    return _find_engine_problem(settings) or ""


def check_waiting(settings: Settings, world: World) -> None:
    """Check that a starting server with RISEML_EXECUTOR does not run jobs as processes that were accepted for
    containers.

    Raises:
        UsageError: it would run them as processes.
    """
    if settings.executor == PROCESS and _find_used_executor(world, settings) == DOCKER:
        raise UsageError(
            "there are experiments that were accepted for containers, and as processes they would run as you, with your"
            " files",
            "leave out RISEML_EXECUTOR=process or `--executor process`; `riseml kill ID` ends them",
        )


def check_cluster_choice(spec: PoolSpec, settings: Settings, world: World) -> None:
    """Check that `engine: slurm` in pool.yml does not contradict the user's choice of an executor or experiments that
    were accepted for containers.

    Raises:
        UsageError: the user has chosen containers, or experiments wait for them.
    """
    if spec.slurm is None:
        return
    if settings.executor == DOCKER:
        hint = "unset RISEML_EXECUTOR and leave out `--executor docker`, or take `engine: slurm` out of pool.yml"
        raise UsageError("RISEML_EXECUTOR is docker, and pool.yml chooses a Slurm cluster", hint)
    if world.experiments and read_last_executor(settings.home) not in (SLURM, PROCESS):
        raise UsageError(
            "there are experiments that were accepted for containers, and on a Slurm cluster they would run as you,"
            " with your files",
            "wait until they have ended, or `riseml kill ID` them; until then pool.yml cannot say `engine: slurm`",
        )


def refuse_cluster_for_team(pool: PoolSpec | None, settings: Settings) -> None:
    """Check that a team's server gives no jobs to a cluster.

    Raises:
        Refused: it would.
    """
    if settings.executor == SLURM or (pool is not None and pool.slurm is not None):
        raise Refused(
            "a team's server gives no jobs to a Slurm cluster: they would run as the server's user",
            "list Docker hosts in its pool.yml, and unset RISEML_EXECUTOR; for the cluster, each user runs"
            " `riseml --server local train --executor slurm` on the login node, where their own server submits as them",
        )


def refuse_own_machine(pool: PoolSpec | None, settings: Settings) -> None:
    """Check that the server of a home which several machines share gives no jobs to its own machine.

    Raises:
        Refused: it would.
    """
    if settings.local is None:
        return
    local = [] if pool is None else [host.name for host in pool.hosts if host.url.startswith("unix://")]
    if pool is not None and pool.slurm is None and settings.executor != PROCESS and not local:
        return
    if local:
        reason = f"pool.yml has {local[0]} at a socket of this machine"
    elif settings.executor in (PROCESS, SLURM):
        reason = f"RISEML_EXECUTOR is {settings.executor}"
    else:
        reason = "there is no pool.yml" if pool is None else "pool.yml says `engine: slurm`"
    raise Refused(
        f"RISEML_LOCAL is set, and {reason}: a server of another machine could not reach these jobs after a take-over",
        "list the hosts in pool.yml with an address, ssh://user@host or tcp://host:port; this machine, too",
    )


def require_login_entry(pool: PoolSpec) -> HostSpec:
    """Return the login node of a cluster as `make_login_entry` does.

    Raises:
        UsageError: there is none.
    """
    entry = None if pool.slurm is None else make_login_entry(pool.slurm)
    if entry is None:
        hint = "name a login node as `login` in the section `slurm` of pool.yml, if it runs elsewhere"
        raise UsageError("Slurm's commands run on the server's machine, and not over ssh", hint)
    return entry


def refuse_cluster(pool: PoolSpec) -> None:
    """Check that a pool has hosts of its own.

    Raises:
        UsageError: it is a cluster, which adds and connects its nodes itself.
    """
    if pool.slurm is not None:
        hint = "the administrator of the cluster adds nodes; `riseml pool check` says how riseml sees it"
        raise UsageError("the pool is a Slurm cluster, which has no Docker hosts", hint)


def complete_pool(spec: PoolSpec | None, settings: Settings, world: World) -> PoolSpec | None:
    """Return the pool.yml, or the Slurm cluster of this machine with its shared folder in the user's home.

    The user chooses that cluster by RISEML_EXECUTOR or `--executor slurm`. Open experiments stay on it.
    """
    if spec is not None and (spec.slurm is not None or settings.executor != SLURM):
        return spec
    folder = settings.home / CLUSTER_FOLDER
    began = bool(world.experiments) and read_last_executor(settings.home) == SLURM and folder.exists()
    if settings.executor == SLURM or (settings.executor is None and began):
        output = str(settings.output)
        data = str(settings.data)
        return PoolSpec((), output, data, engine=EngineKind.SLURM, slurm=SlurmSpec(str(folder)))
    return spec


def check_executor(settings: Settings) -> None:
    """Check that the executor in RISEML_EXECUTOR can run jobs here and now; the hosts of pool.yml need not answer.

    Raises:
        RisemlError: it cannot.
    """
    if settings.executor == PROCESS and sys.platform != "linux":
        raise UsageError(*_NEEDS_LINUX)
    pool = PoolFile(settings.pool_file).load() if settings.executor == SLURM else None
    if settings.executor == SLURM and (pool is None or pool.slurm is None):
        check_cluster()
    if settings.executor == DOCKER and PoolFile(settings.pool_file).load() is None:
        try:
            # a refusal is an answer, too
            with suppress(EngineError), closing(connect_local_engine(settings)) as engine:
                engine.version()
        except Unreachable as error:
            raise Unreachable(error.message, f"{error.hint}; {_OR_PROCESSES}") from error


def _choose_processes(opener: HostOpener, note: str) -> LocalChoice:
    if sys.platform != "linux":
        raise UsageError(*_NEEDS_LINUX)
    return LocalChoice(opener.open_processes(), PROCESS, note)


def _find_used_executor(world: World, settings: Settings) -> str | None:
    """Return the executor that open experiments began with, or else were accepted for; None when none is open."""
    hosts = (job.host for experiment in world.experiments for job in experiment.jobs)
    kinds = {find_kind(host) for host in hosts if host is not None}
    if kinds:
        return PROCESS if PROCESS in kinds else DOCKER
    return read_last_executor(settings.home) if world.experiments else None


def _find_engine_problem(settings: Settings) -> str | None:
    """Return why the engine of this machine does not answer; None when it does, even with a refusal."""
    engine = settings.engine
    try:
        with socket.socket(socket.AF_UNIX) as probe:  # checked first: without a listener the SDK leaks its socket
            probe.connect(engine.removeprefix("unix://"))
        with closing(connect_local_engine(settings)) as client:
            client.version()
    except PermissionError as error:
        return f"{engine}: {error.strerror}{_find_forbidding_group(engine)}"
    except OSError as error:
        return f"{engine}: {error.strerror}"
    except EngineError:
        return None
    except Unreachable as error:
        return error.message
    return None


def _find_forbidding_group(engine: str) -> str:
    """Return an addition to the message when an engine may run there, but this user has no access to it."""
    try:
        group = grp.getgrgid(Path(engine.removeprefix("unix://")).stat().st_gid).gr_name
    except (OSError, KeyError):  # this user may not enter a folder above the socket, or the group has no name
        return "; an engine may run there, but you may not use it"
    return f"; an engine may run there, but you may not use it: you are not in the group {group}"
