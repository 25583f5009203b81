"""Which executor this server uses: the one that is named, else Docker when an engine answers, else processes."""

from __future__ import annotations

import logging
import socket
import sys
from dataclasses import dataclass

from riseml.errors import EngineError, Unreachable, UsageError
from riseml.executors.base import Executor
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.machine import list_gpus
from riseml.executors.process.executor import ProcessExecutor
from riseml.executors.transports.engine_client import Engine
from riseml.model import World
from riseml.names import LOCAL_HOST, THIS_MACHINE
from riseml.settings import DEFAULT_ENGINE, Settings
from riseml.spec.pool.types import HostSpec

DOCKER, PROCESS = "docker", "process"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """An executor, what the settings call it, and a line for people when nobody asked for it."""

    executor: Executor
    name: str
    note: str = ""


def choose_executor(settings: Settings, server: str, world: World) -> Choice:
    """The executor for the local host.

    What has begun with one executor is finished with it; an engine that DOCKER_HOST names is never replaced.

    Raises:
        UsageError: the settings name an executor that cannot run here.
    """
    note = ""
    name = settings.executor or _used_by(world)
    if name is None:
        trouble = None if settings.engine != DEFAULT_ENGINE else _ask(settings.engine)
        name = PROCESS if trouble is not None and sys.platform == "linux" else DOCKER
        note = "" if name == DOCKER else "No Docker Engine answers here: jobs run as processes of this machine."
    if note:
        log.info("%s (%s)", note, trouble)
    if name == PROCESS:
        if sys.platform != "linux":
            raise UsageError("jobs without Docker need Linux", "start a Docker Engine, and unset RISEML_EXECUTOR")
        return Choice(ProcessExecutor(THIS_MACHINE, server, settings.home), PROCESS, note)
    engine = Engine(settings.engine)
    gpus = list_gpus() if engine.is_local else ()  # an engine elsewhere has GPUs of its own
    host = HostSpec(LOCAL_HOST, settings.engine, gpus=gpus)
    return Choice(DockerExecutor(host, server, engine, settings.build_network), DOCKER)


def _used_by(world: World) -> str | None:
    """The executor of the experiments that have not ended."""
    hosts = {job.host for experiment in world.experiments for job in experiment.jobs}
    if THIS_MACHINE in hosts:
        return PROCESS
    return DOCKER if LOCAL_HOST in hosts else None


def _ask(engine: str) -> str | None:
    """Why the engine does not answer; None when it does, even with a refusal."""
    try:
        with socket.socket(socket.AF_UNIX) as door:  # first, since the SDK loses its socket when nobody is there
            door.connect(engine.removeprefix("unix://"))
        Engine(engine).version()
    except OSError as error:
        return f"{engine}: {error.strerror}"
    except EngineError:
        return None
    except Unreachable as error:
        return error.message
    return None
