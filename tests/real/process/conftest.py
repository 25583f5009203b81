"""An executor of processes without a server, and jobs for it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from riseml.base.errors import RisemlError
from riseml.base.names import HostName, JobName
from riseml.executors.base import HostSetup
from riseml.executors.process.executor import ProcessExecutor
from riseml.files.archives.project_files import ProjectFiles
from riseml.model import ContainerObservation, Image, JobKey, Launch, LogCursor, Owner
from riseml.spec.config.types import Limits, Resources
from tests.support.builds import make_build_request
from tests.support.hosts import Machine
from tests.support.waiting import DEADLINE, wait_for

SERVER = uuid.uuid4().hex  # a new one in every run, so that two runs at once do not disturb each other
IMAGE = Image("plain")

Found = TypeVar("Found")


def wait(what: str, look: Callable[[], Found | None]) -> Found:
    """Call `look` until it returns something."""
    return wait_for(what, look, DEADLINE)


def key(job: str = "train", experiment: int = 1, attempt: int = 1) -> JobKey:
    """Return the key of a job."""
    return JobKey(experiment, JobName(job), attempt)


class Bench:
    """One executor, and short calls of it."""

    def __init__(self, home: Path, server: str = SERVER) -> None:
        self.home = home
        self.machine = Machine(home)
        self.server = server
        self.executor = ProcessExecutor(HostName("here"), server, home)

    def start(self, script: str, job: str = "train", code: ProjectFiles | None = None, **environment: str) -> JobKey:
        """Start a job that runs a shell script."""
        launch = self.launch(script, job, **environment)
        self.executor.prepare(HostSetup(launch.key.experiment))
        self.executor.start(launch, code)
        return launch.key

    def launch(self, script: str, job: str = "train", **environment: str) -> Launch:
        """Return the launch that the server would ask for."""
        return Launch(
            key=key(job),
            server=self.server,
            title=f"ann.1.{job}",
            hostname=job,
            image=IMAGE,
            command=("/bin/sh", "-ec", script),
            environment=tuple(environment.items()),
            resources=Resources(0.1, 64, 0),
            limits=Limits(),
            shm_size=64,
            owner=Owner("ann", os.getuid(), os.getgid()),
            snapshot="",
        )

    def look(self, job: JobKey) -> ContainerObservation | None:
        """Return what the executor reports of a job."""
        return self.executor.observe(frozenset()).containers.get(job)

    def wait_end(self, job: JobKey) -> ContainerObservation:
        """Wait until a job has ended."""

        def ended() -> ContainerObservation | None:
            found = self.look(job)
            return found if found is not None and found.exit_code is not None else None

        return wait(f"{job} has ended", ended)

    def output(self, job: JobKey) -> bytes:
        """Return everything that a job has printed."""
        batches = self.executor.read_log(job, LogCursor(), follow=False)
        return b"".join(frame.data for batch in batches for frame in batch)

    def wait_output(self, job: JobKey, text: bytes) -> bytes:
        """Wait until a job has printed this."""
        return wait(f"{text!r} is printed", lambda: out if text in (out := self.output(job)) else None)

    def left(self) -> list[psutil.Process]:
        """Return every process of this executor's jobs."""
        return self.machine.processes(self.server)


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the environment that all tests share; no test changes it."""
    home = tmp_path_factory.mktemp("shared")
    Bench(home).executor.ensure_image(make_build_request(IMAGE))
    return home / "environments"


@pytest.fixture
def bench(tmp_path: Path, environments: Path) -> Iterator[Bench]:
    """Give an executor with a home of its own; kill all its processes afterwards."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "environments").symlink_to(environments)
    made = Bench(home)
    yield made
    for process in made.left():
        try:
            process.kill()
        except psutil.NoSuchProcess as error:
            print(error)


def message(error: pytest.ExceptionInfo[RisemlError]) -> str:
    """Return message and hint of an error."""
    return f"{error.value.message} ({error.value.hint})"
