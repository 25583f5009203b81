"""riseml as a contender: a home with its server, commands as a user types them, and the API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from benchmarks.common import BenchContext
from benchmarks.engine import BenchEngine, poll_until
from benchmarks.machine import make_environ
from riseml.base.settings import read_settings
from riseml.files.project.archive import take_snapshot
from riseml.files.project.listing import list_project_files

COMMAND = str(Path(sys.executable).parent / "riseml")
_DEADLINE = 180.0


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ended."""

    seconds: float  # wall time
    code: int  # exit code
    out: str  # standard output


class Home:
    """One RISEML_HOME. The first command starts the server, and the end of the block stops it."""

    def __init__(self, context: BenchContext, name: str = "home", **variables: str) -> None:
        self.folder = context.folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.engine = BenchEngine(context.engine)
        self.environ = make_environ(RISEML_HOME=str(self.folder), DOCKER_HOST=context.engine, **variables)
        self.socket = read_settings({"RISEML_HOME": str(self.folder)}).socket
        self.command = COMMAND
        self._server: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.socket.exists():
            identity = self.server()["id"]
            self.run("server", "stop")
            if self.environ.get("RISEML_EXECUTOR") != "process":
                self.engine.remove(f"io.riseml.server={identity}")
                self.engine.remove_layers(f"io.riseml.server={identity}")

    def stop(self) -> None:
        """End the server; the next command starts another one."""
        self.run("server", "stop")
        self._server = None

    def run(self, *words: str, cwd: Path | None = None, codes: tuple[int, ...] = (0,)) -> Done:
        """Run a command to its end.

        Raises:
            RuntimeError: the exit code is not in `codes`. The message has the end of the output.
        """
        begun = time.perf_counter()
        ended = subprocess.run(
            [self.command, *words], cwd=cwd or self.folder, env=self.environ, capture_output=True, timeout=_DEADLINE
        )
        seconds = time.perf_counter() - begun
        if ended.returncode not in codes:
            output = (ended.stdout + ended.stderr).decode(errors="replace")[-2000:]
            raise RuntimeError(f"riseml {' '.join(words)}: exit code {ended.returncode}\n{output}")
        return Done(seconds, ended.returncode, ended.stdout.decode(errors="replace"))

    def spawn(self, *words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a command in the background; its output goes to a pipe."""
        return subprocess.Popen(
            [self.command, *words],
            cwd=cwd or self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )

    def train(self, project: Path) -> str:
        """Start an experiment with `train -d`, and return its ID."""
        return str(json.loads(self.run("train", "-d", "--json", cwd=project).out.splitlines()[0])["id"])

    def submit(self, project: Path) -> str:
        """Submit a project over the API, and return the experiment's ID. The server must have the files already."""
        body = {
            "project": "bench",
            "file": "riseml.yml",
            "config": (project / "riseml.yml").read_text(encoding="utf-8"),
            "parameters": [],
            "settings": [],
            "environment": {},
            "snapshot": take_snapshot(list_project_files(project)).digest,
        }
        with self.client() as client:
            return str(client.post("/experiments", json=body).raise_for_status().json()["id"])

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        transport = httpx.HTTPTransport(uds=str(self.socket))
        with httpx.Client(transport=transport, base_url="http://riseml/v1", timeout=60) as client:
            yield client

    def get(self, path: str, **params: Any) -> Any:
        with self.client() as client:
            return client.get(path, params=params).raise_for_status().json()

    def server(self) -> dict[str, Any]:
        """Return the server's description of itself, which does not change while it runs: one request is enough."""
        if self._server is None:
            self._server = dict(self.get("/server"))
        return self._server

    def label(self, experiment: str) -> str:
        """Return the label of the experiment's containers: its key, equal to its number in a store of one user."""
        return f"io.riseml.experiment={experiment}"

    def containers(self, experiment: str, *, running: bool = True) -> list[dict[str, Any]]:
        labels = [f"io.riseml.server={self.server()['id']}", self.label(experiment)]
        return list(self.engine.api.containers(all=not running, filters={"label": labels}))

    def wait_jobs(self, experiment: str, state: str, jobs: int) -> float:
        """Follow the log until `jobs` jobs have had this state.

        Returns:
            When the client read the last one's entry, in seconds since 1970.

        Raises:
            RuntimeError: the experiment ended before that.
        """
        ids: set[str] = set()
        with self.client() as client, client.stream("GET", f"/experiments/{experiment}/logs") as answer:
            for line in answer.iter_lines():
                entry = json.loads(line)
                if entry["type"] == "end":
                    break
                if entry["type"] == "state" and entry["state"] == state and "." in entry["id"]:
                    if not entry["id"].endswith(".build"):
                        ids.add(entry["id"])
                    if len(ids) >= jobs:
                        return time.time()
        raise RuntimeError(f"experiment {experiment} ended before {jobs} jobs were {state}")

    def wait_closed(self, experiment: str) -> dict[str, Any]:
        """Wait until nothing of the experiment is left on any host, and return the experiment."""

        def look() -> dict[str, Any] | None:
            record = self.get(f"/experiments/{experiment}")
            return record if record["closed"] else None

        return dict(poll_until(f"experiment {experiment} is closed", look, 90, 0.05))

    def kill(self, experiment: str) -> None:
        """Kill the experiment, and wait until nothing of it is left on any host."""
        with self.client() as client:
            client.post(f"/experiments/{experiment}/kill").raise_for_status()
        self.wait_closed(experiment)


def write_project(folder: Path, train: Mapping[str, Any], files: Mapping[str, str] | None = None) -> Path:
    """Write a project, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"riseml.yml": json.dumps({"project": "bench", "train": train}), **(files or {})}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def read_memory(pid: int, field: str = "VmRSS") -> float:
    """Return the memory of a process in MiB: now (VmRSS) or its peak (VmHWM).

    Returns:
        0 for a child process that has ended and was not waited for.
    """
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return max((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith(field)), default=0.0)


def read_cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
