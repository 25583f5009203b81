"""The gang that every contender runs: a master, workers and a ps, each a line of shell in the same image.

riseml gets a riseml.yml, Compose a docker-compose.yml, and TorchX a component. By hand, threads call the SDK.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common import BenchContext
from benchmarks.engine import BASE, RUN, BenchEngine, describe_container, make_label_filter, poll_until
from benchmarks.home import write_project
from benchmarks.machine import make_environ

FOUR = {
    "master": "exec sleep 600",
    "worker-1": "exec sleep 600",
    "worker-2": "exec sleep 600",
    "ps-1": "exec sleep 600",
}
_COMPONENT = '''
import json
import torchx.specs as specs


def gang(name: str, image: str, jobs: str) -> specs.AppDef:
    """A gang.

    Args:
        name: its name
        image: its image
        jobs: a line of shell for each role, as JSON
    """
    resource = specs.Resource(cpu=1, gpu=0, memMB=64)
    roles = [
        specs.Role(name=role, image=image, entrypoint="/bin/sh", args=["-ec", line], resource=resource)
        for role, line in json.loads(jobs).items()
    ]
    return specs.AppDef(name=name, roles=roles)
'''


def make_train_section(jobs: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Return the `train` section of a gang that runs these lines of shell, by name of the job."""
    cases = "\n".join(f"{name.replace('-', '.')}) {line} ;;" for name, line in jobs.items())
    workers = sum(name == "master" or name.startswith("worker") for name in jobs)
    ps = sum(name.startswith("ps") for name in jobs)
    return {
        "framework": "tensorflow",
        "image": BASE,
        "tensorflow": {"version": "2.21.0", "distributed": {"worker": workers, "ps": ps}},
        "resources": {"cpus": 0.05, "mem": "64MiB"},
        "finish_grace": "0s",
        "run": f'case "$RISEML_JOB" in\n{cases}\nesac\n',
        **more,
    }


@dataclass
class ByHand:
    """The raw SDK, with one thread and one open connection for each container: the fastest way to start them."""

    engine: BenchEngine
    label: str = "hand"
    binds: list[str] = field(default_factory=list)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))

    def start(self, jobs: Mapping[str, str], network: str, archive: bytes | None = None) -> dict[str, str]:
        """Create and start all jobs, and return the ids of their containers by name.

        Args:
            archive: the project as a tar, copied into each container as riseml does; None: no project.
        """
        begun = {name: self.pool.submit(self._start, name, line, network, archive) for name, line in jobs.items()}
        return {name: future.result() for name, future in begun.items()}

    def _start(self, name: str, line: str, network: str, archive: bytes | None) -> str:
        api = self.engine.api
        config = describe_container(
            ["/bin/sh", "-ec", line], self.label, network, binds=self.binds, Hostname=name, WorkingDir="/code"
        )
        identity = str(api.create_container_from_config(config, f"riseml-{RUN}-{self.label}-{name}")["Id"])
        if archive is not None:
            api.put_archive(identity, "/code", archive)
        api.start(identity)
        return identity

    def remove(self) -> None:
        self.engine.remove(make_label_filter(self.label))


class Compose:
    """docker-compose. It mounts the project into each container, and copies no code."""

    label = f"com.docker.compose.project={RUN}"

    def __init__(self, context: BenchContext, jobs: Mapping[str, str]) -> None:
        self.folder = write_project(context.folder / "compose", {}, {})
        self.environ = make_environ(DOCKER_HOST=context.engine)
        services = {
            name: {
                "image": BASE,
                "entrypoint": [],
                "command": ["/bin/sh", "-ec", line.replace("$", "$$")],
                "init": True,
                "mem_reservation": "64m",
                "working_dir": "/code",
                "volumes": [".:/code"],
            }
            for name, line in jobs.items()
        }
        text = json.dumps({"version": "2.4", "services": services})
        (self.folder / "docker-compose.yml").write_text(text, encoding="utf-8")

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        _run(["docker-compose", "-p", RUN, *words], self.folder, self.environ, codes)

    def spawn(self, *words: str) -> subprocess.Popen[bytes]:
        command = ["docker-compose", "-p", RUN, *words]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def remove(self) -> None:
        self.run("down", "--timeout", "0")


class TorchX:
    """`torchx run -s local_docker`. It gets the image's ID, because with a name TorchX first asks a registry."""

    _label = "torchx.pytorch.org/app-id"

    def __init__(self, context: BenchContext, engine: BenchEngine) -> None:
        self.folder = context.folder / "torchx"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "component.py").write_text(_COMPONENT, encoding="utf-8")
        self.engine = engine
        self.environ = make_environ(DOCKER_HOST=context.engine)
        self.command = str((context.bench_python or Path()).parent / "torchx")

    def run(self, jobs: Mapping[str, str]) -> None:
        """Run until all jobs have ended: `local_docker` has no detached mode."""
        _run(self._words(jobs), self.folder, self.environ, (0,))

    @contextmanager
    def spawn(self, jobs: Mapping[str, str]) -> Iterator[None]:
        """Run in the background until the block ends."""
        process = subprocess.Popen(
            self._words(jobs), cwd=self.folder, env=self.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def _words(self, jobs: Mapping[str, str]) -> list[str]:
        arguments = ["--name", RUN, "--image", self.engine.image_id(BASE), "--jobs", json.dumps(dict(jobs))]
        return [self.command, "run", "-s", "local_docker", "component.py:gang", *arguments]

    def wait_running(self, count: int) -> list[str]:
        """Wait until `count` of its containers run, and return their ids."""
        return poll_until(
            f"{count} containers of TorchX run", lambda: ids if len(ids := self._ids()) >= count else None
        )

    def remove(self) -> None:
        for identity in self._ids(running=False):
            self.engine.api.remove_container(identity, force=True, v=True)

    def _ids(self, *, running: bool = True) -> list[str]:
        rows = self.engine.api.containers(all=not running, filters={"label": self._label})
        return [row["Id"] for row in rows if row["Labels"][self._label].startswith(RUN)]


def pack_project(folder: Path) -> bytes:
    """Return the project as the tar archive that riseml copies into a container."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(folder, ".")
    return buffer.getvalue()


def make_project(context: BenchContext, train: Mapping[str, Any], name: str = "project") -> Path:
    """Make a project of usual size, twenty files of 3 KB, and return its folder."""
    files = {f"module_{number}.py": f"# {number}\n" + "x = 1\n" * 500 for number in range(20)}
    return write_project(context.folder / name, train, files)


def change_code(project: Path, turn: int) -> None:
    """Change a file of the project, as a user does between two runs."""
    (project / "module_0.py").write_text(f"# {turn} {threading.get_ident()} {os.urandom(8).hex()}\n", encoding="utf-8")


def _run(command: list[str], folder: Path, settings: dict[str, str], codes: tuple[int, ...]) -> None:
    process = subprocess.run(command, cwd=folder, env=settings, capture_output=True, timeout=180, check=False)
    if process.returncode not in codes:
        output = (process.stdout + process.stderr).decode(errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{output}")
