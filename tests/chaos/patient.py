"""A rig whose server may die at any moment: it starts the next server and repeats the request."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx
from docker.errors import ImageNotFound

from riseml.base.errors import Unreachable
from riseml.base.faultpoints import VARIABLE
from riseml.executors.docker.labels import ENVIRONMENT
from tests.chaos.scenes import GO, Scene
from tests.support.hosts import Engine
from tests.support.rig import Rig
from tests.support.waiting import DEADLINE

PATIENCE = 300.0  # seconds without a change of state or a death of the server
_BETWEEN = 0.05  # seconds between two requests

Found = TypeVar("Found")


class PatientRig(Rig):
    """A rig that counts the deaths of its servers.

    Args:
        orders: the fault point at which each server dies, one order for each server; later servers do not die.
    """

    def __init__(self, home: Path, engine: str | None, orders: Iterable[str] = (), **environment: str) -> None:
        super().__init__(home, engine, **environment)
        self.deaths = 0
        self.on_death: Callable[[], None] = lambda: None
        self._orders = iter(orders)
        self._key = uuid.uuid4().hex

    def client(self) -> httpx.Client:
        """Return an HTTP client, after a test connection: httpx leaves a socket open when no server listens.

        Raises:
            httpx.ConnectError: no server listens.
        """
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError as error:
                raise httpx.ConnectError(str(error)) from error
        return super().client()

    def start_with_order(self) -> None:
        """Start a server with the next order; a server that dies while it starts counts as a death."""
        while True:
            self._arm()
            try:
                self.start()
            except (AssertionError, httpx.TransportError):
                if not self.note_death():
                    raise
            else:
                return

    def run_scene(self, scene: Scene) -> None:
        """Submit the scene, and start servers until the experiment is closed."""
        self.start_with_order()
        self.retry_until_answered(lambda: self._submit(scene))
        killed, pause, end = False, threading.Event(), time.monotonic() + PATIENCE
        progress: tuple[object, ...] = ()
        while time.monotonic() < end:
            found = self.retry_until_answered(lambda: self.experiment("1"))
            if found["closed"]:
                return
            if scene.kill and not killed and found["state"] == "RUNNING":
                self.retry_until_answered(lambda: self.post("/v1/experiments/1/kill"))
                killed = True
            if progress != (found["state"], self.deaths):
                progress, end = (found["state"], self.deaths), time.monotonic() + PATIENCE
            pause.wait(_BETWEEN)
        raise AssertionError(f"the experiment did not change for {PATIENCE:.0f} s\n{self.last_words()}")

    def retry_until_answered(self, ask: Callable[[], Found]) -> Found:
        """Repeat the request, with new servers, until one of them answers."""
        while True:
            try:
                return ask()
            except httpx.TransportError:
                if not self.note_death():
                    raise
                self.start_with_order()

    def end_and_clean_up(self) -> None:
        """End the server, then remove what a failure left; not before, because the server removes things, too."""
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            if hasattr(self, "_known_id"):
                self.clean_up()
                self._remove_environments()
            self.host.close()

    def submit_scene(self, scene: Scene) -> dict[str, Any]:
        """Submit a scene, with the same key each time: a request that is repeated makes no second experiment."""
        return self._submit(scene)

    def note_death(self) -> bool:
        """Wait for the end of the server, count it, and return True when SIGKILL ended it."""
        if self.process is None:
            return False
        try:
            code = self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            return False
        self.deaths += 1
        self.on_death()
        return code == -signal.SIGKILL

    def let_go(self) -> None:
        """Make the file that the jobs of an open scene wait for."""
        for starts in Path(self.environment.get("RISEML_OUTPUT", self.home / "output")).rglob("starts"):
            starts.with_name(GO).touch()

    def _remove_environments(self) -> None:
        """Remove the environments that its experiments made; no other server uses them."""
        store = b"".join(path.read_bytes() for path in self.home.glob("riseml.db*"))
        if isinstance(self.host, Engine):
            for digest in set(re.findall(rb'"digest": ?"([0-9a-f]{64})', store)):
                for image in self.host.api.images(filters={"label": f"{ENVIRONMENT}={digest.decode()}"}):
                    with suppress(ImageNotFound):
                        self.host.api.remove_image(image["Id"], force=True)

    def _arm(self) -> None:
        order = next(self._orders, "")
        self.environment.pop(VARIABLE, None)
        if order:
            self.environment[VARIABLE] = order

    def _submit(self, scene: Scene) -> dict[str, Any]:
        """Submit with the same key each time, so that a repeated request makes no second experiment."""
        body = self.submission(scene.config, scene.files, key=self._key)

        def post() -> httpx.Response | None:
            found = self.post("/v1/experiments", body)
            return None if found.status_code == Unreachable.http_status else found

        answer = self.wait("a host of its pool answers", post)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def state(self) -> str:
        """Return the state of the experiment; an empty text when no server answers."""
        try:
            return str(self.experiment("1")["state"])
        except (httpx.HTTPError, AssertionError):
            return ""
