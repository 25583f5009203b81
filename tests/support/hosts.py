"""What a test sees and changes directly on a host, without the server: on a Docker Engine or on this machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypedDict

import docker
import psutil
from docker.errors import APIError

from riseml.base.errors import EngineError
from riseml.base.names import CODE_REPOSITORY
from riseml.executors.docker.labels import BUILD_SERVER, HELPER, JOB, SERVER, is_helper
from riseml.executors.docker.networks import StuckNetworks, remove_network
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.process_tree import MARKER
from tests.support.waiting import DEADLINE, wait_for


class Row(TypedDict):
    """The fields of one container in an engine's list that tests read."""

    Id: str
    Labels: dict[str, str]


class Host(Protocol):
    """The host of one rig. `server` is the id of the rig's server."""

    name: str
    contained: bool
    environment: dict[str, str]

    def jobs(self, server: str, *, running: bool = False) -> list[str]:
        """Return the names of the jobs on the host; with `running`, only of the running ones."""

    def shared(self, server: str) -> list[str]:
        """Return what the jobs of each experiment share: names of networks, or of folders."""

    def helpers(self, server: str) -> list[str]:
        """Return the containers that the server uses for itself at this moment, and those that it has left."""

    def remove(self, server: str, job: str) -> None:
        """Remove a job."""

    def wait_end(self, server: str, job: str) -> None:
        """Wait until a job has ended."""

    def clean_up(self, server: str) -> None:
        """Remove what a failed test left."""

    def close(self) -> None:
        """Close every connection."""


class Engine:
    """A Docker Engine."""

    name = "local"
    contained = True

    def __init__(self, url: str) -> None:
        self.environment = {"DOCKER_HOST": url, "RISEML_EXECUTOR": "docker"}
        self.api = docker.APIClient(base_url=url, version="auto", timeout=DEADLINE)

    def jobs(self, server: str, *, running: bool = False) -> list[str]:
        """Return the names of the jobs, and what runs for builds; helpers work for the server and go by themselves."""
        rows = [row["Labels"] for row in self.rows(server, running=running)]
        return [marks.get(JOB, "a container without a job") for marks in rows if not is_helper(marks)]

    def shared(self, server: str) -> list[str]:
        found = [self.api.networks(filters={"label": f"{mark}={server}"}) for mark in (SERVER, BUILD_SERVER)]
        return [row["Name"] for rows in found for row in rows]

    def helpers(self, server: str) -> list[str]:
        rows = [row["Labels"] for row in self.rows(server)]
        return [f"helper {marks[HELPER]}" for marks in rows if is_helper(marks)]

    def remove(self, server: str, job: str) -> None:
        self.api.remove_container(self.find(server, job), force=True)

    def wait_end(self, server: str, job: str) -> None:
        self.api.wait(self.find(server, job), timeout=DEADLINE)

    def clean_up(self, server: str) -> None:
        remove_left([self], server)

    def layers(self, server: str) -> list[str]:
        """Return the names of the images that hold code for the server's jobs."""
        rows = self.api.images(filters={"reference": CODE_REPOSITORY, "label": f"{SERVER}={server}"})
        return [name for row in rows for name in row["RepoTags"] if name.startswith(CODE_REPOSITORY)]

    def remove_layers(self, server: str) -> None:
        for name in self.layers(server):
            with suppress(APIError):
                self.api.remove_image(name, force=True)

    def close(self) -> None:
        self.api.close()

    def rows(self, server: str, *, running: bool = False) -> list[Row]:
        """Return the server's containers from the engine's list."""
        marks = (f"{SERVER}={server}", f"{BUILD_SERVER}={server}")
        found: list[list[Row]] = [self.api.containers(all=not running, filters={"label": mark}) for mark in marks]
        return [row for rows in found for row in rows]

    def find(self, server: str, job: str) -> str:
        """Return the id of a job's container."""
        (found,) = [row["Id"] for row in self.rows(server) if row["Labels"].get(JOB) == job]
        return found


def remove_left(engines: Sequence[Engine], server: str) -> None:
    """Remove a server's containers, networks and layers from these engines.

    The server may remove them at the same time, and members of a swarm notice late what is gone.
    """
    wait_for("its containers are gone", lambda: _remove_containers(engines, server), DEADLINE)
    stuck = StuckNetworks()
    wait_for("its networks are gone", lambda: _remove_networks(engines, server, stuck), DEADLINE)
    for engine in engines:
        engine.remove_layers(server)


def _remove_containers(engines: Sequence[Engine], server: str) -> bool:
    """Return True when none is left."""
    for engine in engines:
        for row in engine.rows(server):
            with suppress(APIError):
                engine.api.remove_container(row["Id"], force=True, v=True)
    return not any(engine.rows(server) for engine in engines)


def _remove_networks(engines: Sequence[Engine], server: str, stuck: StuckNetworks) -> bool:
    """Return True when none is left that the engines remove."""
    for engine in engines:
        for network in engine.shared(server):
            with suppress(APIError, EngineError):
                remove_network(engine.api, network, stuck)
    return not {name for engine in engines for name in engine.shared(server)} - stuck.written_off()


class Machine:
    """This machine, whose jobs are processes below the server's home."""

    name = "this-machine"
    contained = False

    def __init__(self, home: Path) -> None:
        self.environment = {"RISEML_EXECUTOR": "process"}
        self.root = home / "processes"

    def jobs(self, server: str, *, running: bool = False) -> list[str]:
        folders = [path for path in self.root.glob("[0-9]*/*-a*") if not running or self.supervisor(path) is not None]
        return [path.name.rpartition("-a")[0] for path in folders] + [
            f"process {process.pid}" for process in self.processes(server) if not running and not folders
        ]

    def shared(self, server: str) -> list[str]:
        return [path.name for path in self.root.glob("[0-9]*")]

    def helpers(self, server: str) -> list[str]:
        return []

    def remove(self, server: str, job: str) -> None:
        path = self.find(job)
        supervisor = self.supervisor(path)
        path.rename(self.root / ".trash" / "removed-by-a-test")
        if supervisor is not None:
            supervisor.kill()
            supervisor.wait(DEADLINE)

    def wait_end(self, server: str, job: str) -> None:
        supervisor = self.supervisor(self.find(job))
        if supervisor is not None:
            supervisor.wait(DEADLINE)

    def clean_up(self, server: str) -> None:
        for process in self.processes(server):
            with suppress(psutil.NoSuchProcess):  # the supervisor may end it first
                process.kill()

    def close(self) -> None:
        pass

    def find(self, job: str) -> Path:
        """Return the folder of a job."""
        (found,) = self.root.glob(f"[0-9]*/{job}-a*")
        return found

    def state(self, job: str) -> dict[str, object]:
        """Return the state that the job's supervisor wrote last."""
        found: dict[str, object] = json.loads((self.find(job) / "state.json").read_text())
        return found

    def supervisor(self, folder: Path) -> psutil.Process | None:
        """Return the supervisor of a job, or None when it has ended."""
        try:
            found = json.loads((folder / "state.json").read_text())
            process = psutil.Process(found["pid"])
            return process if process.status() != psutil.STATUS_ZOMBIE and "exit_code" not in found else None
        except (FileNotFoundError, psutil.NoSuchProcess):
            return None

    def processes(self, server: str) -> list[psutil.Process]:
        """Return every process of the server's jobs, found by its environment, without supervisors: they end last."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                ours = process.environ().get(MARKER, "").startswith(f"{server}/")
                if ours and supervisor.PROGRAM not in process.cmdline():
                    found.append(process)
            except psutil.Error:
                continue
        return found


def kill(process: int) -> None:
    """Send SIGKILL to a process."""
    os.kill(process, signal.SIGKILL)
