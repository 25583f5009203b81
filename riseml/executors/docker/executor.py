"""One Docker Engine. Identity is in labels, so that a container can be matched without the store.

Facts that this module rests on: a client timeout says nothing about the effect, so that every call may be repeated; a
container whose start failed stays `created` with an exit code and sends no event; `containers()` of the low-level
client lists in one call, the high-level one inspects each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import docker
import urllib3
from docker.errors import APIError, NotFound

from riseml.control.actions import Signal
from riseml.errors import EngineError, Unreachable
from riseml.executors.base import BuildOrder, Share
from riseml.executors.capabilities import HostReport, InventoryItem
from riseml.executors.docker import helper_container, images, inventory, labels, networks, stats
from riseml.executors.docker.containers import container_name, container_request
from riseml.executors.docker.exit_events import ExitEvents
from riseml.executors.docker.facts import FactsReader
from riseml.executors.docker.host_check import inspect_host
from riseml.executors.docker.log_frames import Behind, ChunkReader, FrameReader, since
from riseml.executors.docker.outages import Outages, is_doubtful
from riseml.executors.docker.project_archive import code_archive
from riseml.executors.gpus import GpuReader, with_gpu_use
from riseml.executors.machine import list_subnets
from riseml.executors.timestamps import to_datetime, to_nanoseconds
from riseml.executors.transports import engine_client
from riseml.executors.transports.engine_client import Engine, raise_for_refusal
from riseml.model import ContainerSeen, Frame, HostSeen, JobKey, Launch, LogCursor, Mount, Owner, Sample
from riseml.names import HOST_LABEL
from riseml.spec.pool.types import HostSpec
from riseml.states import Network

_START_FAILURES = frozenset({125, 126, 127})  # the command's own fault; 128 is the engine's and may pass
_GONE = frozenset({"removing", "dead"})
_MISSING, _CONFLICT = 404, 409
_CHUNK = 65536
_KILLED = 137


class DockerExecutor:
    """A host of the pool.

    Args:
        host: what the pool says of it.
        server: id of the server whose containers are ours.
        engine: the connection.
        build_network: network of `install` steps.
    """

    contained = True

    def __init__(self, host: HostSpec, server: str, engine: Engine, build_network: str) -> None:
        self.name = host.name
        self.engine = engine
        self._host = host
        self._server = server
        self._build_network = build_network
        self._facts = FactsReader(host)
        self._shares: dict[int, str] = {}  # of experiments whose network another host makes, or that need none
        self._seen: dict[str, ContainerSeen] = {}
        self._gpus = GpuReader()
        self._outages = Outages()
        self._deaths = ExitEvents()

    def describe(self) -> str:
        return "Docker" if self._facts.last is None else f"Docker {self._facts.last.version}"

    def observe(self, references: frozenset[str]) -> HostSeen:
        try:
            seen = self._observe(references)
        except EngineError:
            raise
        except Unreachable:
            self._outages = self._outages.begun()
            raise
        self._outages = self._outages.over()
        return seen

    def _observe(self, references: frozenset[str]) -> HostSeen:
        containers: dict[JobKey, ContainerSeen] = {}
        fresh: dict[str, ContainerSeen] = {}
        changed = self._deaths.take_changed()
        with self.engine.api() as api:
            rows = api.containers(all=True, filters={"label": labels.label_filter(labels.SERVER, self._server)})
            for row in rows:
                found = None if row["State"] in _GONE else self._look(api, row, asked=row["Id"] in changed)
                if found is not None:
                    containers[found.key] = fresh[row["Id"]] = found
            mine, foreign = networks.list_subnets(api, self._server, self.name)
            if self.engine.is_local:
                foreign += tuple(subnet for subnet in list_subnets() if subnet not in mine.values())
            present = {reference: images.is_present(api, reference) for reference in references}
            facts = self._facts.read(api)
        self._seen = fresh
        return HostSeen(
            capacity=facts.capacity,
            containers=containers,
            images=present,
            networks={**self._shares, **mine},
            foreign_subnets=foreign,
            labels={**dict(self._host.labels), HOST_LABEL: self.name},
            address=self._host.address or facts.address,
            swarm=facts.swarm,
            manager=facts.manager,
        )

    def forget_facts(self) -> None:
        """Ask the engine again what it is, at the next observation."""
        self._facts = FactsReader(self._host)

    def ensure_image(self, order: BuildOrder) -> None:
        with self.engine.stream() as api:
            images.ensure(api, order, self._build_network)

    def export_image(self, reference: str) -> Iterator[bytes]:
        with self.engine.stream() as api:
            yield from images.export(api, reference)

    def import_image(self, reference: str, stream: Iterator[bytes]) -> None:
        with self.engine.stream() as api:
            images.load(api, reference, stream)

    def publish_image(self, reference: str, registry: str) -> None:
        with self.engine.api(patient=True) as api:
            images.publish(api, reference, registry)

    def fetch_image(self, reference: str, registry: str) -> None:
        with self.engine.api(patient=True) as api:
            images.fetch(api, reference, registry)

    def prepare(self, share: Share) -> None:
        with self.engine.api() as api:
            if share.output is not None:
                helper_container.make(api, self._server, share.experiment, share.output)
            if share.creates_network and share.network is not Network.HOST:
                networks.create(api, self._server, self.name, share)
            else:
                self._shares[share.experiment] = share.subnet or ""

    def start(self, launch: Launch, code: Path | None) -> None:
        name = container_name(self._server, launch.key)
        with self.engine.api(patient=True) as api:
            try:
                api.create_container_from_config(container_request(launch, self._facts.read(api).most_mem), name)
            except APIError as error:
                if error.status_code != _CONFLICT:
                    raise
                if self._adopt(api, name, launch.key):
                    return
            if code is not None:
                _put_code(api, name, code, launch.owner)
            try:
                api.start(name)
            except APIError as error:
                if engine_client.lacks_network(error):  # it was made for that one, and never starts with its successor
                    api.remove_container(name, v=True)
                raise

    def stop(self, key: JobKey, signal: Signal) -> None:
        name = container_name(self._server, key)
        self._deaths.ask(name)
        with self.engine.api() as api, _fine(_MISSING, _CONFLICT):
            api.kill(name, signal.value)

    def remove(self, key: JobKey) -> None:
        with self.engine.api(patient=True) as api, _fine(_MISSING, _CONFLICT):
            api.remove_container(container_name(self._server, key), v=True, force=True)

    def release(self, experiment: int) -> None:
        if self._shares.pop(experiment, None) is None:
            with self.engine.api() as api:
                networks.remove(api, self._server, experiment)

    def list_inventory(self, references: frozenset[str]) -> list[InventoryItem]:
        with self.engine.api() as api:
            return inventory.list_items(api, self.name)

    def discard_item(self, item: InventoryItem) -> None:
        with self.engine.api(patient=True) as api:
            inventory.remove_item(api, item)

    def check_host(self) -> HostReport:
        with self.engine.api() as api:
            return inspect_host(api, self._host)

    def read_file(self, mount: Mount, name: str) -> bytes | None:
        with self.engine.api(patient=True) as api:
            return helper_container.read(api, self._server, mount, name)

    def write_file(self, mount: Mount, name: str, content: bytes) -> None:
        with self.engine.api(patient=True) as api:
            helper_container.write(api, self._server, mount, name, content)

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        with self.engine.stream() as api:
            reader = FrameReader()
            behind = Behind(cursor)
            for chunk in _log_chunks(api, container_name(self._server, key), cursor, follow=follow):
                frames = behind.keep(reader.feed(chunk))
                if frames:
                    yield frames

    def sample(self, key: JobKey) -> Iterator[Sample]:
        name = container_name(self._server, key)
        with self.engine.stream() as api:
            gpus = _gpus(api.inspect_container(name)) if self.engine.is_local else ()
            for sample in stats.read(api.stats(name, decode=True, stream=True)):
                yield with_gpu_use(sample, self._gpus.read_use(gpus))

    def changes(self) -> Iterator[None]:
        ours = labels.label_filter(labels.SERVER, self._server)
        filters = {"label": ours, "event": ["die", "start", "destroy", "oom"]}
        with self.engine.stream() as api, closing(api.events(filters=filters, decode=True)) as news:
            for event in news:
                self._deaths.note(event)
                yield

    def _adopt(self, api: docker.APIClient, name: str, key: JobKey) -> bool:
        """A container of this name is there: fine when it is the one that we want. True when it has been started."""
        found = api.inspect_container(name)
        if labels.parse_job_key(found["Config"]["Labels"] or {}) != key:
            raise EngineError(f"a container called {name} is there and is not ours", permanent=True)
        return _container(key, found).started

    def _look(self, api: docker.APIClient, row: dict[str, Any], *, asked: bool) -> ContainerSeen | None:
        """What a row of the list stands for. The list lags behind the events; an inspection does not, but costs
        more.
        """
        key = labels.parse_job_key(row["Labels"])
        known = self._seen.get(row["Id"])
        running = row["State"] in ("running", "paused", "restarting")
        if key is None:
            return None
        if known is not None and known.started and not known.running:
            return known
        if known is not None and known.started and running and not asked:
            return known
        ended = self._deaths.end(known) if known is not None and known.started else None
        if ended is not None:
            return self._explain(ended)
        try:
            found = _container(key, api.inspect_container(row["Id"]))
        except NotFound:
            return None
        if found.exit_code == _KILLED and not found.oom:
            found = replace(found, oom=self._deaths.starved(found.id))
        return self._explain(found)

    def _explain(self, found: ContainerSeen) -> ContainerSeen:
        """A job that was ended by a signal, told apart from one that its engine took with it.

        An engine that stops takes no new connections before it ends the first container, but still answers on those
        that it has: one that cannot be reached anew is not believed.

        Raises:
            Unreachable: the engine is going down.
        """
        found = self._outages.explain(found)
        if is_doubtful(found) and not found.error:
            with self.engine.stream() as api:
                api.ping()
        return found


@contextmanager
def _fine(*codes: int) -> Iterator[None]:
    """These refusals mean that what was asked is already so."""
    try:
        yield
    except APIError as error:
        if error.status_code not in codes:
            raise


def _put_code(api: docker.APIClient, name: str, code: Path, owner: Owner) -> None:
    """Copy the project into the container. The SDK's own call sets no deadline."""
    url = f"{api.base_url}/v{api.api_version}/containers/{name}/archive"
    raise_for_refusal(api.put(url, params={"path": "/"}, data=code_archive(code, owner), timeout=api.timeout))


def _log_chunks(api: docker.APIClient, name: str, cursor: LogCursor, *, follow: bool) -> Iterator[bytes]:
    """The raw log. The SDK's own call drops the stream's number and cannot start at a nanosecond."""
    params = {"stdout": "1", "stderr": "1", "timestamps": "1", "follow": "1" if follow else "0"}
    start = since(cursor)
    if start is not None:
        params["since"] = start
    url = f"{api.base_url}/v{api.api_version}/containers/{name}/logs"
    with api.get(url, params=params, stream=True, timeout=(api.timeout, None if follow else 60)) as answer:
        raise_for_refusal(answer)
        yield from _content(answer.raw)


def _content(raw: urllib3.HTTPResponse) -> Iterator[bytes]:
    """What the engine sends, in pieces as large as they come. urllib3 would hand over each frame on its own, which
    takes longer than everything that is done with it, so that its file is read instead; no public name leads there.
    """
    file = getattr(getattr(raw, "_fp", None), "fp", None)
    if not raw.chunked or file is None:
        yield from raw.stream(_CHUNK, decode_content=False)
        return
    chunks = ChunkReader()
    while not chunks.complete:
        piece = file.read1(_CHUNK)
        if not piece:
            raise urllib3.exceptions.ProtocolError("the engine's log was cut")
        try:
            content = chunks.feed(piece)
        except ValueError as error:
            raise urllib3.exceptions.ProtocolError(f"the engine's log is not readable: {error}") from error
        if content:
            yield content


def _container(key: JobKey, found: dict[str, Any]) -> ContainerSeen:
    state = found["State"]
    started_at, finished_at = _time(state["StartedAt"]), _time(state["FinishedAt"])
    started = started_at is not None and state["Status"] != "created"
    ended = started and not state["Running"]
    failed = not started and state["ExitCode"] in _START_FAILURES
    return ContainerSeen(
        key=key,
        id=found["Id"],
        started=started,
        exit_code=state["ExitCode"] if ended else None,
        oom=bool(state["OOMKilled"]),
        error=(state["Error"] or f"exit code {state['ExitCode']}") if failed else "",
        started_at=started_at if started else None,
        finished_at=finished_at if ended else None,
    )


def _gpus(found: dict[str, Any]) -> tuple[str, ...]:
    """The GPUs that a container was given, which are this machine's: only a local engine is given any."""
    requests = found["HostConfig"].get("DeviceRequests") or []
    return tuple(identity for request in requests for identity in request.get("DeviceIDs") or ())


def _time(text: str) -> datetime | None:
    """The engine's RFC 3339 time; its zero time is the year 1."""
    return None if text.startswith("0001") else to_datetime(to_nanoseconds(text))
