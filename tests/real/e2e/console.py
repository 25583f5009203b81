"""The real `riseml` command on a real engine: each call is a process, and none may print a traceback.

Most calls are forked (`tests/support/command.py`); those with a `command` are started as users start them. The servers
that they spawn are started, too.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from riseml.base.settings import read_settings
from tests.support.command import plain_environ, run_riseml, start_riseml
from tests.support.hosts import Engine
from tests.support.server_process import SERVER, start_server
from tests.support.waiting import DEADLINE, wait_for

RISEML = (str(Path(sys.executable).with_name("riseml")),)
OLD = "1.9.0"
_OLD_RISEML = f"import riseml; riseml.__version__ = {OLD!r}; from riseml.cli.main import run; run()"
_OLD_SERVER = (
    f"import riseml, sys; riseml.__version__ = {OLD!r}; from riseml.server.process import main; sys.exit(main())"
)
OLD_RISEML = (sys.executable, "-c", _OLD_RISEML)
OLD_SERVER = (sys.executable, "-c", _OLD_SERVER)

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def id(self) -> str:
        """The ID of the experiment in its output."""
        found = re.search(r"^(\d+) +\| ", self.out, re.MULTILINE) or re.search(r"\bExperiment (\d+)", self.out)
        assert found, f"no experiment in {self}"
        return found[1]

    def lines(self, job: str) -> list[str]:
        """Return the lines that a job (`master`, `worker.1`) printed."""
        return re.findall(rf"^\d+\.{re.escape(job)} +\| \[[^]]+\] (?!--> )(.*)$", self.out, re.MULTILINE)

    def states(self, job: str = "") -> list[str]:
        """Return the states of a job, or of the experiment, in order."""
        name = rf"\.{re.escape(job)}" if job else ""
        return re.findall(rf"^\d+{name} +\| \[[^]]+\] --> (\w+)$", self.out, re.MULTILINE)


class Running:
    """A command that runs. A test can wait for its output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._said: dict[str, list[str]] = {"out": [], "err": []}
        self._news = threading.Condition()
        assert process.stdout is not None, "a pipe was asked for"
        assert process.stderr is not None, "a pipe was asked for"
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("out", process.stdout), ("err", process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until standard output matches, from its beginning."""
        with self._news:
            self._news.wait_for(lambda: self._find(pattern) or not self._reads(), DEADLINE)
        found = self._find(pattern)
        assert found, f"{pattern!r} did not come within {DEADLINE:.0f} s: {self._said}"
        return found

    def finish(self) -> Result:
        """Wait for its end and return the result."""
        code = self.process.wait(DEADLINE)
        for reader in self._readers:
            reader.join(DEADLINE)
        return _check(Result(code, "".join(self._said["out"]), "".join(self._said["err"])))

    def _find(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, "".join(self._said["out"]), re.MULTILINE)

    def _reads(self) -> bool:
        return self._readers[0].is_alive()

    def _read(self, name: str, stream: IO[str]) -> None:
        for line in stream:
            with self._news:
                self._said[name].append(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()


class Console:
    """The command with its own home. `where` is its working directory."""

    def __init__(self, home: Path, engine: str, where: Path, **environment: str) -> None:
        self.home = home
        self.where = where
        self.engine = Engine(engine)
        # In the transcript of RiseML each line has its time and the whole ID of its job, which `Result` reads.
        self._environment = {"RISEML_HOME": str(home), "DOCKER_HOST": engine, "RISEML_LOG": "classic", **environment}
        self._server = ""

    def fork_server(self) -> Self:
        """Start the server before the first command does: its import would take a second of processor time. For tests
        of what jobs do; how commands start a server is tried in this folder.
        """
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        process = start_server(SERVER, self.environ(), self.home / "server.log")
        self.wait("the server answers", lambda: process.poll() is not None or self._is_answered())
        assert process.poll() is None, (self.home / "server.log").read_text()
        return self

    def _is_answered(self) -> bool:
        with socket.socket(socket.AF_UNIX) as door:
            return door.connect_ex(str(read_settings({"RISEML_HOME": str(self.home)}).socket)) == 0

    def run(self, *words: str, where: Path | None = None, command: Sequence[str] = ()) -> Result:
        """Run one command to its end and return the result; with `command`, a program that is started, not forked."""
        if not command:
            forked = run_riseml(words, where or self.where, self.environ(), 3 * DEADLINE)
            return _check(Result(forked.returncode, forked.stdout, forked.stderr))
        done = subprocess.run(
            [*command, *words],
            cwd=where or self.where,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=3 * DEADLINE,
        )
        return _check(Result(done.returncode, done.stdout, done.stderr))

    @contextmanager
    def start(self, *words: str, where: Path | None = None) -> Iterator[Running]:
        """Start a command that runs beside the test."""
        with start_riseml(words, where or self.where, self.environ(), text=True) as process:
            running = Running(process)
            try:
                yield running
            finally:
                process.kill()
                running.finish()

    def ask(self, *words: str) -> Any:
        """Return what a command prints with `--json`."""
        result = self.run(*words, "--json")
        assert result.code == 0, result
        return json.loads(result.out)

    def end(self, identity: str) -> dict[str, Any]:
        """Wait until an experiment is closed, and return it."""
        assert self.run("logs", identity).code == 0

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.ask("status", identity)
            return found if found["closed"] else None

        return self.wait(f"nothing of experiment {identity} is left", look)

    def containers(self, *, running: bool = False) -> list[str]:
        """Return the names of the jobs that have containers."""
        return sorted(self.engine.jobs(self.server_id(), running=running))

    def leftovers(self) -> list[str]:
        """Return containers and networks that remain after a deadline; the server may still remove the last ones."""

        def look() -> list[str]:
            return [*self.containers(), *self.engine.shared(self.server_id())]

        with suppress(AssertionError):
            self.wait("nothing is left", lambda: not look())
        return look()

    def server_id(self) -> str:
        """Return the id of the server; it must have run before."""
        if not self._server:
            self._server = str(self.ask("server", "status")["id"])
        return self._server

    def kill_server(self) -> None:
        """Kill the server with SIGKILL."""
        self.server_id()
        os.kill(self.ask("server", "status")["pid"], signal.SIGKILL)

    def count_lines(self, job: str) -> int:
        """Return how many lines the engine has of a job now."""
        return len(self.engine.api.logs(self.engine.find(self.server_id(), job)).splitlines())

    def wait(self, what: str, look: Callable[[], Found | None]) -> Found:
        """Call `look` until it returns something, and return that."""
        return wait_for(what, look, DEADLINE)

    def environ(self) -> dict[str, str]:
        """Return the environment of its processes."""
        return plain_environ(**self._environment)

    def close(self) -> None:
        """Stop the server, and remove what a failed test may have left."""
        status = self.run("server", "status", "--json")
        if status.code == 0:
            self._server = json.loads(status.out)["id"]
            self.run("server", "stop")
        if self._server:
            self.engine.clean_up(self._server)
        self.engine.close()


def _check(result: Result) -> Result:
    for said in (result.out, result.err):
        assert not re.search("^Traceback", said, re.MULTILINE), said  # a traceback of a job begins with the job's name
        assert "riseml itself failed" not in said, said
    return result


def write(folder: Path, config: str, **files: str) -> Path:
    """Write a project and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"riseml.yml": config, **files}.items():
        (folder / name).write_text(text)
    return folder


@contextmanager
def run_old_server(console: Console) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server of an older version; yield when it answers."""
    console.home.mkdir(parents=True, exist_ok=True)
    with (
        (console.home / "server.log").open("ab") as log,
        subprocess.Popen(OLD_SERVER, env=console.environ(), stdout=log, stderr=log, cwd="/") as process,
    ):
        try:
            console.wait("it answers", lambda: console.run("server", "status", command=OLD_RISEML).code == 0)
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
