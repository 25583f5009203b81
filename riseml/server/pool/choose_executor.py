"""The choice of an executor for this machine, in local mode."""

from __future__ import annotations

import logging
import socket
import sys
from dataclasses import dataclass

from riseml.errors import EngineError, Unreachable, UsageError
from riseml.executors.base import Executor
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.gpus import GpuReader
from riseml.executors.process.executor import ProcessExecutor
from riseml.executors.transports.engine_client import Engine
from riseml.model import World
from riseml.names import LOCAL_HOST, THIS_MACHINE
from riseml.settings import DEFAULT_ENGINE, Settings
from riseml.spec.pool.types import HostSpec

DOCKER, PROCESS = "docker", "process"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LocalChoice:
    """The executor for this machine."""

    executor: Executor
    name: str  # `docker` or `process`, as RISEML_EXECUTOR names it
    note: str = ""  # a sentence for users when jobs run as processes although RISEML_EXECUTOR does not ask for it


def choose_executor(settings: Settings, server: str, world: World) -> LocalChoice:
    """Return the executor that RISEML_EXECUTOR names, else Docker when an engine answers, else processes.

    An open experiment stays with the executor that it began with. An engine that DOCKER_HOST names is never replaced.

    Raises:
        UsageError: the settings name an executor that cannot run here.
    """
    name, note = settings.executor or _find_used_executor(world), ""
    if name is None:
        problem = None if settings.engine != DEFAULT_ENGINE else _find_engine_problem(settings.engine)
        name = PROCESS if problem is not None and sys.platform == "linux" else DOCKER
        if name == PROCESS:
            note = "No Docker Engine answers here: jobs run as processes of this machine."
            log.info("%s (%s)", note, problem)
    return _choose_processes(settings, server, note) if name == PROCESS else _choose_docker(settings, server)


def _choose_processes(settings: Settings, server: str, note: str) -> LocalChoice:
    if sys.platform != "linux":
        raise UsageError("jobs without Docker need Linux", "start a Docker Engine, and unset RISEML_EXECUTOR")
    return LocalChoice(ProcessExecutor(THIS_MACHINE, server, settings.home), PROCESS, note)


def _choose_docker(settings: Settings, server: str) -> LocalChoice:
    engine = Engine(settings.engine)
    gpus = GpuReader().list_ids() if engine.is_local else ()  # an engine on another machine has other GPUs
    host = HostSpec(LOCAL_HOST, settings.engine, gpus=gpus)
    return LocalChoice(DockerExecutor(host, server, engine, settings.build_network), DOCKER)


def _find_used_executor(world: World) -> str | None:
    """Return the executor that open experiments began with; None when none has begun."""
    hosts = {job.host for experiment in world.experiments for job in experiment.jobs}
    if THIS_MACHINE in hosts:
        return PROCESS
    return DOCKER if LOCAL_HOST in hosts else None


def _find_engine_problem(engine: str) -> str | None:
    """Return why the engine does not answer; None when it does, even with a refusal."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:  # first: without a listener the SDK leaks its socket
            probe.connect(engine.removeprefix("unix://"))
        Engine(engine).version()
    except OSError as error:
        return f"{engine}: {error.strerror}"
    except EngineError:
        return None
    except Unreachable as error:
        return error.message
    return None
