"""The harness's own access to the Docker Engine: containers by label, their times, events, and cleaning up."""

from __future__ import annotations

import os
import re
import threading
import time
from calendar import timegm
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import docker
from docker.errors import APIError

from benchmarks.common import print_progress
from riseml.base.errors import EngineError
from riseml.executors.docker.networks import WRITE_OFF_AFTER, StuckNetworks, describe_stuck, remove_network

BASE = "riseml-test/base:py311"
PYTORCH = "riseml-test/pytorch:2.13.0"
RUN = f"bench{os.getpid()}"
"""Part of the names and labels of everything that this run of the benchmarks creates without riseml."""

_MARK = "riseml.bench"
_LONG = 3600  # seconds; the engine may send no event for so long
_OF_RUN = f"{_MARK}.run"

Found = TypeVar("Found")


class BenchEngine:
    """One engine. Each thread has its own client, as in riseml."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._local = threading.local()

    @property
    def api(self) -> docker.APIClient:
        client: docker.APIClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = docker.APIClient(base_url=self.url, version="auto", timeout=120)
        return client

    def find(self, label: str, *, running: bool = False) -> list[str]:
        """Return the ids of the containers with this label."""
        return [row["Id"] for row in self.api.containers(all=not running, filters={"label": label})]

    def wait_running(self, label: str, count: int, seconds: float = 60) -> list[str]:
        """Wait until `count` containers with this label run, and return their ids."""
        return poll_until(f"{count} containers of {label} run", lambda: self._running(label, count), seconds)

    def _running(self, label: str, count: int) -> list[str] | None:
        ids = self.find(label, running=True)
        return ids if len(ids) >= count else None

    def last_start(self, ids: list[str]) -> float:
        """Return when the last of these containers started, in seconds since 1970, by the engine's clock."""
        return max(parse_engine_time(self.api.inspect_container(identity)["State"]["StartedAt"]) for identity in ids)

    def image_id(self, image: str) -> str:
        return str(self.api.inspect_image(image)["Id"])

    def remove(self, label: str) -> None:
        """Remove every container and network with this label, and wait until they are gone.

        A server that runs, or was stopped a moment ago, may still start a container or remove a network. The engine
        reports a container as gone before it has disconnected it from its network. So this method repeats until
        nothing is left. Like riseml's server, it gives up a network that the engine refuses to remove for a minute.

        Raises:
            TimeoutError: something else is left.
        """
        stuck = StuckNetworks()
        with ThreadPoolExecutor(8) as pool:

            def remove_once() -> bool:
                containers = self.find(label)
                list(pool.map(self._remove, containers))
                networks = {network["Id"] for network in self.api.networks(filters={"label": label})}
                list(pool.map(lambda identity: self._remove_network(identity, stuck), networks))
                return not containers and not networks - stuck.written_off()

            poll_until(f"nothing with the label {label} is left", remove_once, WRITE_OFF_AFTER + 30, pause=0.1)
        for identity in stuck.written_off():
            print_progress(f"not removed: {describe_stuck(self.api, identity).message}")

    def remove_layers(self, label: str) -> None:
        """Remove the layers with this label that have the code of projects."""
        for image in self.api.images(filters={"reference": "riseml/code", "label": label}):
            for name in image["RepoTags"] or ():
                self.api.remove_image(name, force=True)

    def _remove(self, identity: str) -> None:
        try:
            self.api.remove_container(identity, force=True, v=True)
        except APIError as error:
            if error.status_code not in (404, 409):
                raise

    def _remove_network(self, identity: str, stuck: StuckNetworks) -> None:
        with suppress(EngineError):  # a container is still connected, or the engine still counts one
            remove_network(self.api, identity, stuck)

    def create_network(self, name: str, subnet: str | None = None) -> str:
        """Create a network of the harness, and return its id."""
        pools = [docker.types.IPAMPool(subnet=subnet)] if subnet else []
        ipam = docker.types.IPAMConfig(pool_configs=pools)
        network = self.api.create_network(f"riseml-{RUN}-{name}", driver="bridge", ipam=ipam, labels=make_labels(name))
        return str(network["Id"])

    def clean_up(self) -> None:
        """Remove what a failed or interrupted bench left, also containers of peers: their names contain RUN."""
        self.remove(f"{_OF_RUN}={RUN}")
        for row in self.api.containers(all=True, filters={"name": RUN}):
            self._remove(row["Id"])


class EngineEvents:
    """The times of the engine's events about containers. A thread records them from the creation of this object on."""

    def __init__(self, engine: BenchEngine) -> None:
        self._client = docker.APIClient(base_url=engine.url, version="auto", timeout=_LONG)
        self._stream = self._client.events(filters={"type": "container"}, decode=True)
        self._times: dict[tuple[str, str], float] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def wait(self, identity: str, action: str, seconds: float = 60) -> float:
        """Wait for the container's event (`start`, `die` or `destroy`), and return its time in seconds since 1970."""
        end = time.monotonic() + seconds
        with self._changed:
            while (identity, action) not in self._times:
                if not self._changed.wait(end - time.monotonic()):
                    raise TimeoutError(f"container {identity[:12]}: no {action} within {seconds:.0f} s")
            return self._times[identity, action]

    def close(self) -> None:
        self._stream.close()
        self._client.close()

    def _read(self) -> None:
        try:
            for event in self._stream:
                with self._changed:
                    self._times.setdefault((event["Actor"]["ID"], event["Action"]), event["timeNano"] / 1e9)
                    self._changed.notify_all()
        except (OSError, ValueError, AttributeError):
            return  # closed


def describe_container(command: list[str], label: str, network: str, **more: Any) -> dict[str, Any]:
    """Return the body of `POST /containers/create` for a job by hand: as riseml's, without its security settings."""
    host = {"Init": True, "NetworkMode": network, "Binds": more.pop("binds", [])}
    return {"Image": BASE, "Entrypoint": [], "Cmd": command, "Labels": make_labels(label), "HostConfig": host, **more}


def make_labels(name: str) -> dict[str, str]:
    return {_MARK: f"{RUN}-{name}", _OF_RUN: RUN}


def make_label_filter(name: str) -> str:
    """Return the filter for the containers and networks that have `make_labels(name)`."""
    return f"{_MARK}={RUN}-{name}"


def parse_engine_time(text: str) -> float:
    """Return the engine's RFC 3339 time as seconds since 1970."""
    match = re.fullmatch(r"(.*?)(\.\d+)?Z", text)
    if match is None:
        raise ValueError(f"not a time of the engine: {text}")
    return timegm(time.strptime(match[1], "%Y-%m-%dT%H:%M:%S")) + float(match[2] or 0)


def poll_until(condition: str, look: Callable[[], Found | None], seconds: float = 60, pause: float = 0.02) -> Found:
    """Call `look` until it returns something true, and return that.

    Raises:
        TimeoutError: it returned nothing true within `seconds`.
    """
    end = time.monotonic() + seconds
    waiting = threading.Event()
    while time.monotonic() < end:
        result = look()
        if result:
            return result
        waiting.wait(pause)
    raise TimeoutError(f"not within {seconds:.0f} s: {condition}")


def run_in_parallel(calls: Sequence[Callable[[], object]]) -> None:
    """Run all calls at the same time, and wait until they have ended."""
    with ThreadPoolExecutor(len(calls)) as pool:
        for future in [pool.submit(call) for call in calls]:
            future.result()
