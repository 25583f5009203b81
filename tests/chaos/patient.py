"""A rig whose server may die at any moment: every question is asked again, and the server started again."""

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

from riseml.faultpoints import VARIABLE
from tests.chaos.scenes import Scene
from tests.support.hosts import Engine
from tests.support.rig import Rig

PATIENCE = 120.0  # seconds between two pieces of news
_LOOK = 0.02

Found = TypeVar("Found")


class PatientRig(Rig):
    """A rig that counts the deaths of its servers. `orders` are the places at which one after the other dies."""

    def __init__(self, home: Path, engine: str | None, orders: Iterable[str] = (), **environment: str) -> None:
        super().__init__(home, engine, **environment)
        self.deaths = 0
        self.on_death: Callable[[], None] = lambda: None
        self._orders = iter(orders)
        self._key = uuid.uuid4().hex

    def client(self) -> httpx.Client:
        """Knocks first: httpx leaves a socket open when nobody listens.

        Raises:
            httpx.ConnectError: nobody does.
        """
        with socket.socket(socket.AF_UNIX) as knock:
            try:
                knock.connect(str(self.home / "server.sock"))
            except OSError as error:
                raise httpx.ConnectError(str(error)) from error
        return super().client()

    def begin(self) -> None:
        """Start a server that has the next order; one that dies on its way up is counted."""
        while True:
            self._arm()
            try:
                self.start()
            except (AssertionError, httpx.TransportError):
                if not self.died():
                    raise
            else:
                return

    def live(self, scene: Scene) -> None:
        """Submit, and see to it that there is a server, until nothing of the experiment is left."""
        self.begin()
        self.persist(lambda: self._submit(scene))
        killed, pause, end = False, threading.Event(), time.monotonic() + PATIENCE
        news: tuple[object, ...] = ()
        while time.monotonic() < end:
            found = self.persist(lambda: self.experiment("1"))
            if found["closed"]:
                return
            if scene.kill and not killed and found["state"] == "RUNNING":
                self.persist(lambda: self.post("/v1/experiments/1/kill"))
                killed = True
            if news != (found["state"], self.deaths):
                news, end = (found["state"], self.deaths), time.monotonic() + PATIENCE
            pause.wait(_LOOK)
        raise AssertionError(f"no news of the experiment for {PATIENCE:.0f} s\n{self.last_words()}")

    def persist(self, ask: Callable[[], Found]) -> Found:
        """The answer, from whichever server lives long enough to give it."""
        while True:
            try:
                return ask()
            except httpx.TransportError:
                if not self.died():
                    raise
                self.begin()

    def end(self) -> None:
        """End the server, and then remove what a failure left: not while the server removes it, too."""
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

    def died(self) -> bool:
        """True when the server was ended by SIGKILL; it is given a moment to be dead."""
        if self.process is None:
            return False
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return False
        self.deaths += 1
        self.on_death()
        return code == -signal.SIGKILL

    def _remove_environments(self) -> None:
        """Those that its experiments had made; no scene's are anybody else's."""
        store = b"".join(path.read_bytes() for path in self.home.glob("riseml.db*"))
        if isinstance(self.host, Engine):
            for digest in set(re.findall(rb'"digest": ?"([0-9a-f]{20})', store)):
                with suppress(ImageNotFound):
                    self.host.api.remove_image(f"riseml/environment:{digest.decode()}", force=True)

    def _arm(self) -> None:
        order = next(self._orders, "")
        self.environment.pop(VARIABLE, None)
        if order:
            self.environment[VARIABLE] = order

    def _submit(self, scene: Scene) -> dict[str, Any]:
        """The same request has the same key, so that one whose answer was lost is no second experiment."""
        answer = self.post("/v1/experiments", self.submission(scene.config, key=self._key))
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def state(self) -> str:
        """The state of the experiment; empty when nobody answers."""
        try:
            return str(self.experiment("1")["state"])
        except (httpx.HTTPError, AssertionError):
            return ""
