"""The helper containers of a server: what it runs on engines for itself, beside jobs and builds.

A helper measures a disk, writes a file or lists GPUs, and is removed when that is done. It has a name of its own, and
the label `HELPER`: so the next server finds what a killed one has left. A server that stops removes those that still
work, and makes no new ones.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException

from riseml.base.errors import RisemlError, Unreachable
from riseml.base.records import dataclass
from riseml.executors.docker import labels
from riseml.executors.transports.engine_client import Engine

_MISSING = 404
_CONFLICT = 409
_END = 5.0  # seconds in which helpers are removed; the next server removes what is left
_FINISH = 60.0  # seconds that helpers get to finish on a host that has left the pool
_LOOK_AGAIN = 0.2  # seconds between two looks whether the helpers of a server that stops are gone
_TRY_AGAIN = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0)
"""Seconds before the next try to remove a helper whose engine did not answer."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _HelperUse:
    """A helper that a thread uses, or that its engine did not remove."""

    engine: Engine
    is_made: bool = False  # the engine has answered that it made the container
    is_left: bool = False  # no thread uses it any more


class HelperRegistry:
    """The helpers that this process uses, on all its engines; several threads use it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._uses: dict[str, _HelperUse] = {}  # by the name of the container
        self._is_ended = False

    def claim_name(self, engine: Engine, name: str) -> None:
        """Note that a thread is about to make a helper.

        Raises:
            Unreachable: the server stops.
        """
        with self._changed:
            self._check_open()
            self._uses[name] = _HelperUse(engine)

    def note_made(self, name: str) -> None:
        """Note that the engine has made a helper.

        Raises:
            Unreachable: the server stops.
        """
        with self._changed:
            self._check_open()
            self._uses[name] = _HelperUse(self._uses[name].engine, is_made=True)

    def drop_name(self, name: str) -> None:
        """Forget a helper: no thread uses it any more, and it is gone."""
        with self._changed:
            self._uses.pop(name, None)
            self._changed.notify_all()

    def note_left(self, name: str) -> None:
        """Note that no thread uses a helper any more, and that its container may still exist."""
        with self._changed:
            if name in self._uses:  # else the server, which stops, has removed it
                self._uses[name] = _HelperUse(self._uses[name].engine, is_made=True, is_left=True)
            self._changed.notify_all()

    def is_used(self, name: str) -> bool:
        """Return True while a thread uses a helper."""
        with self._changed:
            return name in self._uses and not self._uses[name].is_left

    def list_engines(self) -> list[Engine]:
        """Return the engines that have helpers."""
        with self._changed:
            return list({id(use.engine): use.engine for use in self._uses.values()}.values())

    def wait_unused(self, engine: Engine, seconds: float) -> bool:
        """Wait until no thread uses a helper on an engine; return False when it takes longer."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not any(use.engine is engine and not use.is_left for use in self._uses.values()), seconds
            )

    def close_engine(self, engine: Engine) -> None:
        """Close the connection to an engine once the helpers on it have finished, and end those that take too long.

        Returns at once. When all helpers are ended already, nothing is waited for.
        """
        if self._is_ended or not any(engine is used for used in self.list_engines()):
            engine.close()
        else:
            threading.Thread(target=self._close_later, args=(engine,), name="close-host", daemon=True).start()

    def _close_later(self, engine: Engine) -> None:
        if not self.wait_unused(engine, _FINISH):
            self.end_on(engine, _END)
        engine.close()

    def end(self, seconds: float = _END) -> None:
        """Remove all helpers, and let no thread make another one. What takes longer than `seconds` is left."""
        with self._changed:
            self._is_ended = True
        workers = [
            threading.Thread(target=self.end_on, args=(engine, seconds), name="end-helpers", daemon=True)
            for engine in self.list_engines()
        ]
        deadline = time.monotonic() + seconds
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    def end_on(self, engine: Engine, seconds: float) -> None:
        """Remove the helpers of one engine; those that it makes at this moment, too."""
        deadline = time.monotonic() + seconds
        while (names := self._list_names(engine)) and time.monotonic() < deadline:
            for name in names:
                if self._is_made(name) and _try_remove(engine, name) is not None:
                    self.drop_name(name)
            with self._changed:
                self._changed.wait_for(lambda: not self._list_names(engine), _LOOK_AGAIN)

    def _list_names(self, engine: Engine) -> list[str]:
        with self._changed:
            return [name for name, use in self._uses.items() if use.engine is engine]

    def _is_made(self, name: str) -> bool:
        with self._changed:
            return name in self._uses and self._uses[name].is_made

    def _check_open(self) -> None:
        if self._is_ended:
            raise Unreachable("the server stops, so that it starts nothing on its hosts")


@dataclass(frozen=True, slots=True)
class Helpers:
    """The helpers of one server on one engine."""

    engine: Engine
    server: str  # id of the server
    registry: HelperRegistry

    @contextmanager
    def lend(self, api: docker.APIClient, purpose: str, request: dict[str, Any]) -> Iterator[str]:
        """Give the name of a new container, and remove it afterwards.

        Args:
            api: a client of the engine.
            purpose: a part of its name: `disk`.
            request: the body of `POST /containers/create`, without labels.

        Raises:
            APIError: the engine refuses to make it.
            Unreachable: the server stops.
        """
        name = self.make(api, purpose, request)
        try:
            yield name
        finally:
            self.discard(api, name)

    def make(self, api: docker.APIClient, purpose: str, request: dict[str, Any]) -> str:
        """Make a container and return its name; `discard` has to follow, or `HelperRegistry.drop_name`."""
        name = self._make_name(purpose)
        self.registry.claim_name(self.engine, name)
        try:
            api.create_container_from_config({**request, "Labels": self.make_marks(purpose)}, name)
            self.registry.note_made(name)
        except APIError:
            self.registry.drop_name(name)
            raise
        except BaseException:  # without an answer, the engine may still make it
            self._discard_later(name)
            raise
        return name

    @contextmanager
    def claim_name(self, purpose: str) -> Iterator[str]:
        """Give a name for a network of helpers, which the block makes with the labels of `make_marks` and removes.

        Raises:
            Unreachable: the server stops.
        """
        name = self._make_name(purpose)
        self.registry.claim_name(self.engine, name)
        try:
            yield name
        finally:
            self.registry.drop_name(name)

    def make_marks(self, purpose: str) -> dict[str, str]:
        """Return the labels by which the next server finds a helper."""
        return {labels.SERVER: self.server, labels.HELPER: purpose}

    def _make_name(self, purpose: str) -> str:
        return f"riseml-{self.server[:8]}-{purpose}-{uuid.uuid4().hex[:8]}"

    def discard(self, api: docker.APIClient, name: str) -> None:
        """Remove a container; a thread tries again while its engine does not answer."""
        try:
            remove_container(api, name)
        except (RisemlError, DockerException, requests.exceptions.RequestException, OSError) as error:
            log.info("the helper %s is removed later: %s", name, error)
            self._discard_later(name)
        else:
            self.registry.drop_name(name)

    def _discard_later(self, name: str) -> None:
        self.registry.note_left(name)
        threading.Thread(target=self._try_to_remove, args=(name,), name="remove-helper", daemon=True).start()

    def _try_to_remove(self, name: str) -> None:
        """Try to remove a container until it was there, or some minutes have passed."""
        for pause in _TRY_AGAIN:
            if _try_remove(self.engine, name):
                break
            threading.Event().wait(pause)
        self.registry.drop_name(name)

    def remove_forgotten(self, api: docker.APIClient) -> None:
        """Remove the helpers and their networks that no thread of this process uses: those of a killed server."""
        filters = {"label": [labels.label_filter(labels.SERVER, self.server), labels.HELPER]}
        for row in api.containers(all=True, filters=filters):
            name = str(row["Names"][0]).lstrip("/")
            if labels.is_helper(row["Labels"]) and not self.registry.is_used(name):
                self.discard(api, name)
        for row in api.networks(filters=filters):
            if not self.registry.is_used(row["Name"]):
                try:
                    api.remove_network(row["Id"])
                except APIError as error:  # it was removed meanwhile, or one of its containers is still being removed
                    log.info("the network %s is removed later: %s", row["Name"], error.explanation or error)


def remove_container(api: docker.APIClient, name: str) -> bool:
    """Remove a container with its anonymous volumes; return False when it does not exist."""
    try:
        api.remove_container(name, v=True, force=True)
    except APIError as error:
        if error.status_code not in (_MISSING, _CONFLICT):
            raise
        return error.status_code == _CONFLICT  # the engine removes it already
    return True


def _try_remove(engine: Engine, name: str) -> bool | None:
    """Remove a container; return False when it does not exist, and None when the engine does not answer."""
    try:
        with engine.api() as api:
            return remove_container(api, name)
    except RisemlError as error:
        log.info("the helper %s is not removed: %s", name, error.message)
        return None
