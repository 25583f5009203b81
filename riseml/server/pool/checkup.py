"""`riseml pool check`: does every host do what the pool needs of it? Each finding is one line."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from riseml import wire
from riseml.errors import RisemlError
from riseml.executors.docker import helper_container
from riseml.executors.docker.facts import read_facts
from riseml.executors.transports import engine_client
from riseml.model import Mount
from riseml.names import HostName
from riseml.server.clock import now
from riseml.server.pool.hosts import Hosts
from riseml.spec.pool.types import HostSpec
from riseml.states import Network

_OLDEST = (1, 41)  # version of the Docker Engine API; Docker 20.10
_SKEW = 5.0  # seconds between two clocks that make logs hard to read together
_TOKEN = ".riseml-check"


class Outcome(enum.Enum):
    """How a check went. NOTE: it does not hurt, but should be known."""

    OK = "ok"
    NOTE = "note"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    host: HostName
    topic: str
    outcome: Outcome
    message: str


@dataclass(frozen=True, slots=True)
class _Checkup:
    """The looks at one pool."""

    hosts: Hosts

    def look(self) -> Iterator[Finding]:
        """Everything: each host alone, then what they share."""
        specs = () if self.hosts.spec is None else sorted(self.hosts.spec.hosts, key=lambda spec: spec.name)
        with ThreadPoolExecutor(max(1, len(specs)), thread_name_prefix="check") as workers:
            each = list(workers.map(lambda spec: tuple(self._check_host(spec)), specs))
        for findings in each:
            yield from findings
        reached = [spec for spec, findings in zip(specs, each, strict=True) if findings[0].outcome is Outcome.OK]
        if self.hosts.network is Network.OVERLAY:
            yield from self._check_swarm(reached)
        yield from self._check_storage(reached)

    def _check_host(self, spec: HostSpec) -> Iterator[Finding]:
        try:
            with self.hosts.engines[spec.name].api() as api:
                version, info, moment = api.version(), api.info(), now()
                environments = api.images(filters={"label": engine_client.ENVIRONMENT})
        except RisemlError as error:
            yield Finding(spec.name, "connection", Outcome.FAILED, error.message)
            return
        yield Finding(spec.name, "connection", Outcome.OK, f"Docker {version['Version']} at {spec.url}")
        if tuple(int(part) for part in version["ApiVersion"].split(".")) < _OLDEST:
            yield Finding(
                spec.name, "version", Outcome.FAILED, f"Docker {version['Version']} is too old: 20.10 is the oldest"
            )
        skew = abs((datetime.fromisoformat(info["SystemTime"][:19] + "+00:00") - moment).total_seconds())
        yield Finding(
            spec.name,
            "clock",
            Outcome.OK if skew < _SKEW else Outcome.NOTE,
            f"within {skew:.0f} s of this server's clock",
        )
        size = sum(image["Size"] for image in environments) / 2**30
        yield Finding(spec.name, "images", Outcome.OK, f"holds {len(environments)} environments ({size:.1f} GiB)")
        if spec.gpus and "nvidia" not in (info.get("Runtimes") or {}):
            yield Finding(
                spec.name, "gpus", Outcome.FAILED, "pool.yml gives it GPUs, but its engine has no nvidia runtime"
            )

    def _check_swarm(self, reached: list[HostSpec]) -> Iterator[Finding]:
        swarms: dict[HostName, str] = {}
        for spec in reached:
            try:
                with self.hosts.engines[spec.name].api() as api:
                    swarms[spec.name] = read_facts(api.info(), spec).swarm
            except RisemlError as error:
                yield Finding(spec.name, "swarm", Outcome.FAILED, error.message)
        ids = [swarm for swarm in swarms.values() if swarm]
        most = max(ids, key=ids.count, default="")
        for name, swarm in swarms.items():
            message = "in the pool's swarm" if swarm == most else "in another swarm than the others"
            if not swarm:
                message = "in no swarm, so that no gang spans it and other hosts; `riseml pool join` makes one"
            yield Finding(name, "swarm", Outcome.OK if swarm and swarm == most else Outcome.FAILED, message)

    def _check_storage(self, reached: list[HostSpec]) -> Iterator[Finding]:
        """What every job mounts is there, and what one host writes all others read."""
        root, others = self.hosts.storage()
        token = uuid.uuid4().hex.encode()
        for spec in reached:
            for mount in others:
                yield self._try(spec, "data", f"{mount.source} is there", mount, None)
        for spec in reached[:1]:
            yield self._try(spec, "output", f"{root.source} can be written", root, token)
        for spec in reached[1:] if self.hosts.shared_output else ():
            yield self._compare(spec, root, token, reached[0].name)

    def _try(self, spec: HostSpec, topic: str, message: str, mount: Mount, text: bytes | None) -> Finding:
        """Mount something, and write `text` there if there is any."""
        try:
            with self.hosts.engines[spec.name].api(patient=True) as api:
                if text is None:
                    helper_container.read(api, self.hosts.server, mount, _TOKEN)
                else:
                    helper_container.write(api, self.hosts.server, mount, _TOKEN, text)
        except RisemlError as error:
            return Finding(spec.name, topic, Outcome.FAILED, _words(error))
        return Finding(spec.name, topic, Outcome.OK, message)

    def _compare(self, spec: HostSpec, root: Mount, token: bytes, writer: HostName) -> Finding:
        try:
            with self.hosts.engines[spec.name].api(patient=True) as api:
                found = helper_container.read(api, self.hosts.server, root, _TOKEN)
        except RisemlError as error:
            return Finding(spec.name, "output", Outcome.FAILED, _words(error))
        if found != token:
            message = f"{root.source} is not the storage that {writer} writes: mount the same one there"
            return Finding(spec.name, "output", Outcome.FAILED, message)
        return Finding(spec.name, "output", Outcome.OK, f"reads in {root.source} what {writer} writes there")


def check_pool(hosts: Hosts) -> list[wire.PoolFinding]:
    """Look at every host; those that do not answer delay nobody."""
    found = _Checkup(hosts).look()
    return [
        {"host": one.host, "topic": one.topic, "outcome": one.outcome.value, "message": one.message} for one in found
    ]


def _words(error: RisemlError) -> str:
    return error.message if error.hint is None else f"{error.message} ({error.hint})"
