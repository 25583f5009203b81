"""A real server in its own process, reached through its socket, with a real engine or processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import pytest

from riseml.base.errors import Unreachable
from riseml.base.settings import read_settings
from tests.support.archives import find_digest, pack
from tests.support.hosts import Engine, Host, Machine
from tests.support.server_process import SERVER, ServerProcess, start_server
from tests.support.waiting import DEADLINE, wait_for
from tests.support.without_tls import NO_AUTHORITIES

BASE = "riseml-test/base:py311"
_MEMORY = "python3 -c 'x = bytearray(600 << 20)'"
HOG = f"sleep 1; {_MEMORY}; sleep 2; {_MEMORY}"
"""Shell of a job that takes more memory than any test gives it. It takes it twice: containerd watches a container's
memory only from a moment after its start, and reports nothing about a process that is killed earlier.
"""

GO_PAUSE = "sleep 0.1"  # a process each time: shorter pauses of many jobs take what the tests beside them need
GO = f'until [ -e "$OUTPUT_DIR/go" ]; do {GO_PAUSE}; done'
"""Shell of a job that waits until the test creates the file `Rig.go_file`."""

Found = TypeVar("Found")


class Rig:
    """One server, its home and its host: a Docker Engine, or this machine when `engine` is None.

    Example:
        with Rig(tmp_path / "home", None) as rig:
            rig.submit(single("echo hello"))
            assert rig.wait_closed("1")["state"] == "FINISHED"
    """

    def __init__(self, home: Path, engine: str | None, **environment: str) -> None:
        self.home = home
        self.engine = engine
        self.environment = environment
        self.command: tuple[str, ...] = SERVER
        self.process: ServerProcess | None = None
        self.socket = read_settings({"RISEML_HOME": str(home)}).socket
        self.host: Host = Machine(home) if engine is None else Engine(engine)
        home.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.host.close()

    def environ(self) -> dict[str, str]:
        """Return the environment variables of this rig's processes."""
        return {**os.environ, "RISEML_HOME": str(self.home), **self.host.environment, **self.environment}

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self.process = start_server(self.command, self.environ(), self.home / "server.log")
        self.wait("the server answers", self._answers)

    def server_pid(self) -> int:
        """Return the process number of the last started server."""
        assert self.process is not None, "the server was started"
        return self.process.pid

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        assert self.process is not None, "the server runs"
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End the server with SIGTERM, and wait for it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=DEADLINE)

    def client(self) -> httpx.Client:
        """Return an HTTP client for the server's socket."""
        transport = httpx.HTTPTransport(uds=str(self.socket), verify=NO_AUTHORITIES)
        return httpx.Client(transport=transport, base_url="http://riseml", timeout=DEADLINE)

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON of an answer that must be successful."""
        with self.client() as client:
            answer = client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None) -> httpx.Response:
        """Return the answer, successful or not."""
        with self.client() as client:
            return client.post(path, json=body)

    def submit(self, config: str, files: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """Submit a project, and return the experiment. The server refuses while its host does not answer: before the
        first answer, and when a busy engine takes longer than the server waits.
        """
        body = self.submission(config, files, **fields)

        def send() -> httpx.Response | None:
            answer = self.post("/v1/experiments", body)
            return None if answer.status_code == Unreachable.http_status else answer

        answer = self.wait("the host has answered the server", send)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def submission(self, config: str, files: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """Upload the project's files, and return the body of the request that submits them."""
        archive = pack({"riseml.yml": config, **(files or {})})
        digest = find_digest(archive)
        with self.client() as client:
            assert client.put(f"/v1/snapshots/{digest}", content=archive).status_code == 201
        return {"project": "toaster", "file": "riseml.yml", "config": config, "snapshot": digest, **fields}

    def experiment(self, name: str) -> dict[str, Any]:
        """Return one experiment as the server shows it."""
        found: dict[str, Any] = self.get(f"/v1/experiments/{name}")
        return found

    def go_file(self, name: str) -> Path:
        """Return the file that the jobs of an experiment wait for with `GO`; one of its jobs must have started."""
        return Path(self.experiment(name)["output"], "go")

    def wait_state(self, name: str, *states: str) -> dict[str, Any]:
        """Wait until the experiment is in one of these states, and return it."""

        def look() -> dict[str, Any] | None:
            found = self.experiment(name)
            return found if found["state"] in states else None

        return self.wait(f"experiment {name} is {' or '.join(states)}", look)

    def wait_closed(self, name: str) -> dict[str, Any]:
        """Wait until the experiment has ended and nothing of it is left on any host, and return it."""

        def look() -> dict[str, Any] | None:
            found = self.experiment(name)
            return found if found["closed"] else None

        return self.wait(f"experiment {name} is closed", look)

    def logs(self, name: str, **params: Any) -> list[dict[str, Any]]:
        """Return the entries of an experiment's log, followed to its end."""
        with self.client() as client, client.stream("GET", f"/v1/experiments/{name}/logs", params=params) as answer:
            return [json.loads(line) for line in answer.iter_lines()]

    def lines(self, name: str, **params: Any) -> list[str]:
        """Return the lines of an experiment's log as `job text`."""
        entries = self.logs(name, **params)
        return [f"{entry['id']} {entry['text']}" for entry in entries if entry["type"] == "line"]

    def containers(self, *, running: bool = False) -> list[str]:
        """Return the names of the jobs that this server has on its host."""
        return self.host.jobs(self.server_id(), running=running)

    def networks(self) -> list[str]:
        """Return the networks, or the folders, that this server's experiments have on the host."""
        return self.host.shared(self.server_id())

    def list_left(self) -> list[str]:
        """Return the jobs, networks and folders that this server has on its host, and helpers that do not end."""
        left = [*self.containers(), *self.networks()]
        with suppress(AssertionError):
            self.wait("its helpers are gone", lambda: not self.host.helpers(self.server_id()))
        return [*left, *self.host.helpers(self.server_id())]

    def remove(self, job: str) -> None:
        """Remove a job from its host without the server."""
        self.host.remove(self.server_id(), job)

    def wait_end(self, job: str) -> None:
        """Wait until a job has ended, whether a server runs or not."""
        self.host.wait_end(self.server_id(), job)

    def wait(self, what: str, look: Callable[[], Found | None]) -> Found:
        """Wait until `look` returns something true, and return it.

        Raises:
            AssertionError: it returns nothing true in time; with the end of the server's log.
        """
        return wait_for(what, look, DEADLINE, self.last_words)

    def last_words(self) -> str:
        """Return the last 30 lines of the server's log."""
        return "\n".join((self.home / "server.log").read_text().splitlines()[-30:])

    def clean_up(self) -> None:
        """End the server, which would make again what is removed, and remove what a failed test left on the host; only
        what belongs to this server.
        """
        self.stop()
        if hasattr(self, "_known_id"):
            self.host.clean_up(self._known_id)

    def server_id(self) -> str:
        """Return the id of the server."""
        if not hasattr(self, "_known_id"):
            self._known_id: str = self.get("/v1/server")["id"]
        return self._known_id

    def _answers(self) -> bool:
        assert self.process is not None, "the server was started"
        assert self.process.poll() is None, f"the server ended:\n{self.last_words()}"
        with socket.socket(socket.AF_UNIX) as door:
            if door.connect_ex(str(self.socket)) != 0:
                return False
        self._known_id = self.get("/v1/server")["id"]
        return True


class KeptRigs:
    """A rig for each executor, which tests use one after the other: a start takes half a second of processor time.

    Example:
        rig = kept.take(engine_url)
        ...
        kept.give_back(engine_url)
    """

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._rigs: dict[str | None, Rig] = {}  # by the address of the engine; None: processes

    def take(self, engine: str | None) -> Rig:
        """Return the server on this engine, or on this machine for None; start it when there is none."""
        if engine not in self._rigs:
            rig = Rig(self._folders.mktemp("shared") / "home", engine)
            self._rigs[engine] = rig
            rig.start()
        return self._rigs[engine]

    def give_back(self, engine: str | None) -> None:
        """End the server unless it runs and nothing of it is on the host, so that the next test gets a new one."""
        rig = self._rigs[engine]
        runs = rig.process is not None and rig.process.poll() is None
        if not runs or rig.containers() or rig.networks():
            self._end(self._rigs.pop(engine))

    def close(self) -> None:
        """End all servers, and remove what is left of them."""
        while self._rigs:
            self._end(self._rigs.popitem()[1])

    def _end(self, rig: Rig) -> None:
        try:
            rig.clean_up()
        finally:
            rig.__exit__()


def gang(script: Mapping[str, str], **keys: Any) -> str:
    """Return a riseml.yml of a master, two workers and a ps.

    Args:
        script: lines of shell by job; a job without any sleeps, longer than any test.
        keys: more keys of `train`.
    """
    cases = "\n".join(f"{job}) {text} ;;" for job, text in script.items())
    run = f'case "$RISEML_JOB" in\n{cases}\n*) exec sleep 3600 ;;\nesac\n'
    train: dict[str, Any] = {
        "framework": "tensorflow",
        "image": BASE,
        "tensorflow": {"version": "2.21.0", "distributed": {"worker": 3, "ps": 1}},
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "run": run,
        **keys,
    }
    return json.dumps({"project": "toaster", "train": train})


def single(run: str | list[str], **keys: Any) -> str:
    """Return a riseml.yml of one job."""
    train = {"image": BASE, "resources": {"cpus": 0.1, "mem": "64MiB"}, "run": run, **keys}
    return json.dumps({"project": "toaster", "train": train})


def filter_entries(entries: list[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    """Give the entries of one type."""
    return (entry for entry in entries if entry["type"] == kind)
