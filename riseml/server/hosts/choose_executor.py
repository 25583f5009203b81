"""The choice of an executor for this machine, in local mode."""

from __future__ import annotations

import grp
import logging
import socket
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.consent import read_consent
from riseml.base.errors import EngineError, Unreachable, UsageError
from riseml.base.names import LOCAL_HOST, SLURM_CLUSTER, THIS_MACHINE
from riseml.base.records import dataclass
from riseml.base.settings import DEFAULT_ENGINE, Settings
from riseml.executors.base import Executor
from riseml.executors.build_limits import read_build_limits
from riseml.executors.docker.environment_builds import BuildSettings
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.helpers import HelperRegistry
from riseml.executors.transports.engine_client import Engine
from riseml.model import World
from riseml.server.hosts.mode import read_last_executor
from riseml.server.hosts.pool_file import PoolFile
from riseml.spec.pool.types import EngineKind, HostSpec, PoolSpec, SlurmSpec, Tls

if TYPE_CHECKING:
    from riseml.executors.slurm.executor import SlurmExecutor

DOCKER = "docker"
PROCESS = "process"
SLURM = "slurm"

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


def count_running_processes(home: Path) -> int:
    """Return how many jobs run as processes that write into a home, whether its server runs or not."""
    from riseml.executors.process.job_folders import list_running_jobs  # only Linux has what it imports

    return len(list_running_jobs(home / "processes"))


def choose_executor(
    settings: Settings, server: str, world: World, registry: HelperRegistry | None = None
) -> LocalChoice:
    """Return the executor that RISEML_EXECUTOR names, else processes when no engine answers and the user agreed to it.

    Without that consent the executor is Docker, whose host stays silent: no job runs outside a container only because
    no engine answers. An open experiment stays with the executor that it was accepted for.

    Raises:
        UsageError: the settings name an executor that cannot run here.
    """
    name = settings.executor or _find_used_executor(world, settings)
    if name == PROCESS:
        return _choose_processes(settings, server, "")
    missing = find_missing_engine(settings) if name is None else ""
    if missing and read_consent(settings.home).processes:
        note = f"No Docker Engine answers here ({missing}): jobs run as processes, as you, with your files."
        log.info("%s", note)
        return _choose_processes(settings, server, note)
    return replace(_choose_docker(settings, server, registry), undecided=bool(missing))


def find_missing_engine(settings: Settings) -> str:
    """Return why no engine answers where processes could take its place; empty when one answers.

    Processes never replace an engine that DOCKER_HOST names.
    """
    if settings.engine != DEFAULT_ENGINE or sys.platform != "linux":
        return ""
    return _find_engine_problem(settings.engine) or ""


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


def check_cluster_choice(settings: Settings, world: World) -> None:
    """Check that `engine: slurm` in pool.yml does not contradict the user's choice of an executor or experiments that
    were accepted for containers.

    Raises:
        UsageError: the user has chosen containers, or experiments wait for them.
    """
    if settings.executor == DOCKER:
        hint = "unset RISEML_EXECUTOR and leave out `--executor docker`, or take `engine: slurm` out of pool.yml"
        raise UsageError("RISEML_EXECUTOR is docker, and pool.yml chooses a Slurm cluster", hint)
    if world.experiments and read_last_executor(settings.home) not in (SLURM, PROCESS):
        raise UsageError(
            "there are experiments that were accepted for containers, and on a Slurm cluster they would run as you,"
            " with your files",
            "wait until they have ended, or `riseml kill ID` them; until then pool.yml cannot say `engine: slurm`",
        )


def complete_pool(spec: PoolSpec | None, settings: Settings, world: World) -> PoolSpec | None:
    """Return the pool.yml, or the Slurm cluster of this machine with its shared folder in the user's home.

    The user chooses that cluster by RISEML_EXECUTOR or `--executor slurm`. Open experiments stay on it.
    """
    if spec is not None and (spec.slurm is not None or settings.executor != SLURM):
        return spec
    folder = settings.home / "slurm"
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
        from riseml.executors.slurm.slurm_commands import SlurmCommands

        SlurmCommands().list_nodes("")
    if settings.executor == DOCKER and PoolFile(settings.pool_file).load() is None:
        try:
            with suppress(EngineError), closing(_make_engine(settings)) as engine:  # a refusal is an answer, too
                engine.version()
        except Unreachable as error:
            raise Unreachable(error.message, f"{error.hint}; {_OR_PROCESSES}") from error


def open_cluster(spec: SlurmSpec, settings: Settings, server: str) -> SlurmExecutor:
    """Return the executor of a Slurm cluster."""
    from riseml.executors.slurm.command_site import find_site
    from riseml.executors.slurm.executor import SlurmExecutor
    from riseml.executors.slurm.slurm_commands import SlurmCommands

    commands = SlurmCommands(find_site(spec, settings.home))
    return SlurmExecutor(SLURM_CLUSTER, server, spec, commands, read_build_limits(settings))


def read_build_settings(settings: Settings) -> BuildSettings:
    """Return how the user wants builds to be confined."""
    return BuildSettings(settings.build_network, read_build_limits(settings))


def _choose_processes(settings: Settings, server: str, note: str) -> LocalChoice:
    if sys.platform != "linux":
        raise UsageError(*_NEEDS_LINUX)
    from riseml.executors.process.executor import ProcessExecutor

    executor = ProcessExecutor(THIS_MACHINE, server, settings.home, read_build_limits(settings))
    return LocalChoice(executor, PROCESS, note)


def _choose_docker(settings: Settings, server: str, registry: HelperRegistry | None) -> LocalChoice:
    engine = _make_engine(settings)
    host = HostSpec(LOCAL_HOST, settings.engine)
    builds = read_build_settings(settings)
    return LocalChoice(DockerExecutor(host, server, engine, builds, settings.log_limit, registry), DOCKER)


def _make_engine(settings: Settings) -> Engine:
    """Return the engine of DOCKER_HOST; over TCP with TLS as DOCKER_TLS_VERIFY and DOCKER_CERT_PATH say."""
    folder = settings.engine_certificates
    if folder is None or not settings.engine.startswith("tcp://"):
        return Engine(settings.engine)
    pair = [str(folder / name) for name in ("cert.pem", "key.pem")]
    if not any(Path(name).exists() for name in pair):
        pair = ["", ""]  # as Docker's command line does: the engine decides whether it requires a certificate
    tls = Tls(str(folder / "ca.pem"), *pair)
    return Engine.of_host(HostSpec(LOCAL_HOST, settings.engine, tls=tls), settings.home)


def _find_used_executor(world: World, settings: Settings) -> str | None:
    """Return the executor that open experiments began with, or else were accepted for; None when none is open.

    Every host but this machine without Docker is an engine, those of a pool.yml that is gone included.
    """
    hosts = {job.host for experiment in world.experiments for job in experiment.jobs} - {None}
    if hosts:
        return PROCESS if THIS_MACHINE in hosts else DOCKER
    return read_last_executor(settings.home) if world.experiments else None


def _find_engine_problem(engine: str) -> str | None:
    """Return why the engine does not answer; None when it does, even with a refusal."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:  # checked first: without a listener the SDK leaks its socket
            probe.connect(engine.removeprefix("unix://"))
        with closing(Engine(engine)) as client:
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
