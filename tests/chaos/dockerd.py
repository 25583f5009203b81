"""A private engine for tests that harm engines, with its own folders, networks and containers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import psutil

from tests.support.dockerd import dockerd_command
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE


class PrivateEngine:
    """One `dockerd`. It makes no firewall rules, so that it does not disturb other engines."""

    def __init__(self, folder: Path, *, live_restore: bool) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/engine.sock"
        self._live_restore = live_restore
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)

    def start(self) -> None:
        """Start the engine, and wait until it answers."""
        words = [
            f"--host={self.url}",
            f"--data-root={self.folder}/data",
            f"--exec-root={self.folder}/exec",
            f"--pidfile={self.folder}/dockerd.pid",
            f"--containerd-namespace=chaos{self.folder.name}",
            f"--containerd-plugins-namespace=chaos{self.folder.name}-plugins",
            "--bridge=none",
            "--iptables=false",
            *(["--live-restore"] if self._live_restore else []),
        ]
        with (self.folder / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*dockerd_command(), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._wait_answer()

    def load_base(self, source: str) -> None:
        """Copy the base image from the engine at `source`."""
        with docker.APIClient(base_url=source, version="auto", timeout=DEADLINE) as old, self.api() as new:
            for _ in new.load_image(old.get_image(BASE)):
                pass

    def api(self) -> docker.APIClient:
        """Return a client; the caller closes it."""
        return docker.APIClient(base_url=self.url, version="1.41", timeout=DEADLINE)

    def signal(self, number: int) -> None:
        """Send a signal to the engine."""
        assert self._process is not None, "it was started"
        self._process.send_signal(number)

    def end(self, number: int) -> None:
        """End the engine with this signal, and wait for its end."""
        assert self._process is not None, "it was started"
        self.signal(number)
        self._process.wait(DEADLINE)
        (self.folder / "dockerd.pid").unlink(missing_ok=True)

    def close(self) -> None:
        """End the engine with everything that it started, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self._remove_containers()
            self.end(signal.SIGTERM)
        for process in self._helpers():
            process.kill()
        for mount in reversed([row.mountpoint for row in psutil.disk_partitions(all=True)]):
            if mount.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _remove_containers(self) -> None:
        with self.api() as api:
            for row in api.containers(all=True):
                api.remove_container(row["Id"], force=True)
            for row in api.networks():
                if row["Name"].startswith("riseml-"):
                    api.remove_network(row["Id"])

    def _helpers(self) -> list[psutil.Process]:
        """Return its containerd and shims, which survive a kill of dockerd."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and any(str(self.folder) in word for word in process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def _wait_answer(self) -> None:
        assert self._process is not None, "it was started"
        pause, end = threading.Event(), time.monotonic() + DEADLINE
        while time.monotonic() < end:
            assert self._process.poll() is None, (self.folder / "dockerd.log").read_text()[-2000:]
            if (self.folder / "engine.sock").exists() and self._answers():
                return
            pause.wait(0.1)
        raise AssertionError(f"the engine in {self.folder} does not answer")

    def _answers(self) -> bool:
        try:
            with self.api() as api:
                return bool(api.ping())
        except (docker.errors.DockerException, OSError):
            return False


@contextmanager
def private_engine(folder: Path, source: str, *, live_restore: bool) -> Iterator[PrivateEngine]:
    """Run an engine that has the base image, and remove everything of it afterwards."""
    with empty_engine(folder, live_restore=live_restore) as engine:
        engine.load_base(source)
        yield engine


@contextmanager
def empty_engine(folder: Path, *, live_restore: bool) -> Iterator[PrivateEngine]:
    """Run an engine without images, and remove everything of it afterwards."""
    engine = PrivateEngine(folder / uuid.uuid4().hex[:6], live_restore=live_restore)
    try:
        engine.start()
        yield engine
    finally:
        engine.close()
