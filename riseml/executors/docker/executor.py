"""A host of the pool that runs jobs as containers of its Docker Engine.

Facts of the engine that this module relies on: a client timeout says nothing about the effect, so every call may be
repeated; a container whose start failed stays `created` with an exit code and sends no event; the SDK's low-level
client lists containers in one call, and the high-level one inspects each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import docker
from docker.errors import APIError

from riseml.base.errors import EngineError, RisemlError, Unreachable
from riseml.base.names import HOST_LABEL
from riseml.base.settings import DEFAULT_LOG_LIMIT
from riseml.base.states import Network
from riseml.control.actions import Signal
from riseml.executors.base import BuildRequest, CheckStart, HostSetup, NotThere, SubnetTaken, allow_start
from riseml.executors.capabilities import Capabilities
from riseml.executors.docker import helper_container, image_names, images, labels
from riseml.executors.docker.code_layers import CodeLayers, is_layer, stores_compressed
from riseml.executors.docker.container_inspections import ContainerInspections
from riseml.executors.docker.containers import container_name, container_request, create_container
from riseml.executors.docker.data_volumes import EngineData, demand_volumes
from riseml.executors.docker.engine_disk import EngineDisk
from riseml.executors.docker.environment_builds import BuildSettings, EnvironmentBuilds
from riseml.executors.docker.exec_commands import end_forgotten_commands
from riseml.executors.docker.exec_ports import ContainerAccess
from riseml.executors.docker.exit_events import ExitEvents
from riseml.executors.docker.facts import FRESH, STILL_FRESH, EngineFacts, FactsReader
from riseml.executors.docker.gpu_inventory import GpuInventory
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.host_check import EngineCheck
from riseml.executors.docker.image_transfer import EngineImages
from riseml.executors.docker.inventory import EngineInventory
from riseml.executors.docker.job_starts import inspect_own, start_container
from riseml.executors.docker.leader_watch import LeaderAnswer, LeaderWatch
from riseml.executors.docker.log_stream import read_log_frames
from riseml.executors.docker.networks import (
    NetworkList,
    NetworkSubnets,
    StuckNetworks,
    ensure_network,
    find_networks,
    remove_written_off,
)
from riseml.executors.docker.observation import (
    ContainerRow,
    Merged,
    is_outdated,
    merge_inspection,
    merge_late,
    merge_row,
    parse_inspection,
    parse_row,
)
from riseml.executors.docker.outages import Outages
from riseml.executors.docker.project_archive import pack_working_directory
from riseml.executors.docker.secret_files import add_secret_files, send_secret_files
from riseml.executors.docker.stack_helper import ContainerStacks
from riseml.executors.docker.stats import ContainerMeters
from riseml.executors.docker.storage_helper import StorageHelpers
from riseml.executors.docker.swarm import SwarmHost
from riseml.executors.docker.written_files import ContainerFiles
from riseml.executors.gpus.nvml import GpuReader
from riseml.executors.this_machine.machine import list_routed_subnets
from riseml.executors.transports.engine_client import Engine
from riseml.files.archives.project_files import ProjectFiles
from riseml.model import ContainerObservation, Frame, HostObservation, JobKey, Launch, LogCursor, Sample
from riseml.spec.pool.types import HostSpec

_MISSING = 404
_CONFLICT = 409
log = logging.getLogger(__name__)


class DockerExecutor:
    """One Docker Engine.

    Args:
        host: the host in pool.yml.
        server: id of this server; containers with another id are ignored.
        engine: the connection.
        builds: how the `install` steps are confined; None: the defaults.
        log_limit: bytes that the server keeps of a job's output.
        registry: the helper containers of this process; None: this executor is its only one.
    """

    contained = True

    def __init__(
        self,
        host: HostSpec,
        server: str,
        engine: Engine,
        builds: BuildSettings | None = None,
        log_limit: int = DEFAULT_LOG_LIMIT,
        registry: HelperRegistry | None = None,
        check_start: CheckStart = allow_start,
    ) -> None:
        self.name = host.name
        self.engine = engine
        self._host = host
        self._server = server
        self._log_limit = log_limit
        self._check_start = check_start
        self._helpers = Helpers(engine, server, registry or HelperRegistry())
        self._builds = EnvironmentBuilds(self._helpers, builds or BuildSettings())
        self._facts = FactsReader(host)
        self._shares: dict[int, str] = {}  # subnets of experiments without a network made here
        self._observations: dict[str, ContainerObservation] = {}  # the last observation, by id of the container
        self._promised: dict[JobKey, int] = {}  # MiB of the jobs that run or were started, of the last observation
        gpu_reader = GpuReader()
        self._devices = GpuInventory(host, self._helpers, gpu_reader if engine.is_local else None)
        self._outages = Outages()
        self._exit_events = ExitEvents()
        self._stuck = StuckNetworks()
        self._networks = NetworkList(server, host.name)
        self._leader = LeaderWatch(engine)
        self._inspections = ContainerInspections(engine)
        self._code = CodeLayers(self._helpers)
        self._meters = ContainerMeters(engine, server, gpu_reader)
        files = helper_container.EngineFiles(self._helpers)
        self.capabilities = Capabilities(
            access=ContainerAccess(engine, server),
            builds=self._builds,
            check=EngineCheck(host, self._helpers, self._devices, self._stuck),
            data=EngineData(self._helpers),
            disk=EngineDisk(self._helpers),
            gpus=self._devices,
            images=EngineImages(engine),
            inventory=EngineInventory(host.name, self._helpers, self._builds, self._stuck),
            outputs=files,
            packages=files,
            registries=image_names.EngineRegistries(engine),
            stacks=ContainerStacks(self._helpers),
            storage=StorageHelpers(self._helpers),
            secret_files=True,
            use=self._meters,
            written=ContainerFiles(engine, server),
        )

    @property
    def url(self) -> str:
        return self.engine.url

    @property
    def is_local(self) -> bool:
        return self.engine.is_local

    def as_member(self) -> SwarmHost:
        """Return the host as the swarm of the pool sees it."""
        return SwarmHost(self.name, self.engine, self._host.address)

    def reconnect(self) -> None:
        self.engine.reconnect()

    def close(self) -> None:
        self._helpers.registry.close_engine(self.engine)

    def describe(self) -> str:
        return "Docker" if self._facts.last is None else f"Docker {self._facts.last.version}"

    def observe(self, references: frozenset[str]) -> HostObservation:
        try:
            observation = self._observe_engine(references)
        except EngineError:
            raise
        except Unreachable:
            self._outages = self._outages.mark_away(_now())
            raise
        self._outages = self._outages.mark_back(_now())
        return observation

    def _observe_engine(self, references: frozenset[str]) -> HostObservation:
        changed = self._exit_events.take_changed()
        with self.engine.api() as api:
            merged = self._observe_containers(api, changed)
            present = image_names.observe_images(api, references)
            self._code.note_images(present)
            subnets, facts = self._observe_swarm(api, STILL_FRESH if references else FRESH)
            devices = self._devices.find_devices(self._facts.info)
        self._observations = {entry.container.id: entry.container for entry in merged if not entry.container.late}
        return HostObservation(
            capacity=replace(facts.capacity, gpus=self._devices.choose_ids(devices)),
            devices={gpu.id: gpu for gpu in devices},
            containers={entry.container.key: entry.container for entry in merged},
            images=present,
            networks={**self._shares, **subnets.own},
            foreign_subnets=(*subnets.foreign, *self._networks.list_taken(), *self._list_machine_subnets(subnets)),
            labels={**dict(self._host.labels), HOST_LABEL: self.name},
            address=self._host.address or facts.address,
            swarm=min(facts.managers, default=""),
            swarm_managers=facts.managers,
            manager=facts.manager,
            leaderless=facts.manager and self._leader.leaderless,
            settles_in=min((entry.settles_in for entry in merged if entry.settles_in is not None), default=None),
        )

    def _observe_swarm(self, api: docker.APIClient, oldest: float) -> tuple[NetworkSubnets, EngineFacts]:
        """Return the networks and the facts of the engine; those from before while its swarm loses its leader."""
        last_facts = self._facts.last
        networks = self._networks.last
        answer = LeaderAnswer.LEADER
        if last_facts is not None and last_facts.manager:
            answer = self._leader.ask()
            if answer is LeaderAnswer.LATE and networks is not None:
                return networks, last_facts
            if answer is LeaderAnswer.NO_MANAGER:
                self._facts.forget()
        subnets = self._networks.read(api, self._stuck.written_off())
        facts = self._facts.read_fresh(api, oldest)
        if last_facts is None:
            self._leader.leaderless = facts.leaderless
        return subnets, facts

    def _list_machine_subnets(self, subnets: NetworkSubnets) -> list[str]:
        """Return the subnets to which a local engine's machine has a route, without those of this server."""
        routed = list_routed_subnets() if self.engine.is_local else ()
        return [subnet for subnet in routed if subnet not in subnets.own.values()]

    def _observe_containers(self, api: docker.APIClient, changed: frozenset[str]) -> list[Merged]:
        """List the containers of this server, inspect those whose row is not enough, and merge both.

        Raises:
            Unreachable: the engine is shutting down; it may have ended a container.
        """
        listed = api.containers(all=True, filters={"label": labels.label_filter(labels.SERVER, self._server)})
        rows = [row for row in map(parse_row, listed) if row is not None]
        mem = {container["Id"]: labels.parse_mem(container["Labels"] or {}) for container in listed}
        self._promised = {row.key: mem[row.id] for row in rows if row.running}
        self._inspections.begin_observation(frozenset(row.id for row in rows))
        observed = [self._observe_container(row, changed=row.id in changed) for row in rows]
        merged = [entry for entry in observed if entry is not None]
        if any(entry.needs_ping for entry in merged):
            with self.engine.stream() as fresh:
                fresh.ping()
        return merged

    def _observe_container(self, row: ContainerRow, *, changed: bool) -> Merged | None:
        """Return one container; None: it was removed after it was listed."""
        events = self._exit_events.find_events(row.id, changed=changed)
        last_observation = self._observations.get(row.id)
        merged = merge_row(row, last_observation, events, self._outages)
        if merged is not None:
            return merged
        try:
            inspection = self._inspections.inspect(row.id)
        except NotThere:
            return None
        inspected = None if inspection is None else parse_inspection(row.key, inspection)
        if inspected is None or is_outdated(row, inspected):
            return merge_late(row, last_observation)
        events = self._exit_events.find_events(row.id, changed=changed)  # further events may have arrived meanwhile
        return merge_inspection(inspected, events, self._outages)

    def forget_facts(self) -> None:
        """Read the facts of the engine again at the next observation."""
        self._facts.forget()
        self._devices.forget()

    def ensure_image(self, request: BuildRequest) -> None:
        with self.engine.stream() as api:
            base = images.ensure_base(api, request)
            most_mem = self._facts.read_fresh(api, STILL_FRESH).most_mem
        if request.image.install:
            self._builds.make_environment(request, base, most_mem)

    def prepare(self, share: HostSetup) -> None:
        with self.engine.api() as api:
            if share.output is not None:
                helper_container.make_output(api, self._helpers, share.experiment, share.output)
            if share.creates_network and share.network is not Network.HOST:
                try:
                    ensure_network(api, self._server, self.name, share, self._stuck.written_off())
                except SubnetTaken:
                    self._networks.note_taken(share.subnet or "")
                    raise
            else:
                self._shares[share.experiment] = share.subnet or ""

    def start(self, launch: Launch, code: ProjectFiles | None) -> None:
        name = container_name(self._server, launch.key)
        with self.engine.api(patient=True) as api, self._lend_layer(api, launch, code) as layer:
            try:
                most_mem = self._facts.read_fresh(api, STILL_FRESH).most_mem
                promised_mem = sum(mem for key, mem in list(self._promised.items()) if key != launch.key)
                self._promised[launch.key] = launch.resources.mem
                network = self._find_renamed_network(api, launch)
                request = container_request(launch, most_mem - promised_mem, network, self._log_limit)
                request = add_secret_files(request, launch)
                has_code = create_container(api, request, name, layer)
                self._code.note_use(layer, exists=has_code)
            except APIError as error:
                if error.status_code != _CONFLICT:
                    raise
                container = inspect_own(api, name, launch.key)
                if parse_inspection(launch.key, container).started:
                    return
                has_code = is_layer(container["Config"]["Image"])
            demand_volumes(api, name, launch.mounts)
            if code is not None and not has_code:
                helper_container.send_archive(api, name, "/", pack_working_directory(code, launch.owner))
            self._check_start()
            with send_secret_files(self.engine, name, launch.secrets):
                start_container(api, name, launch)

    @contextmanager
    def _lend_layer(self, api: docker.APIClient, launch: Launch, code: ProjectFiles | None) -> Iterator[str | None]:
        """Give the image that has the job's environment and code; None: the code is unpacked into its container."""
        if code is None:
            yield None
            return
        self._facts.read_fresh(api, STILL_FRESH)
        with self._code.lend(api, launch, code, compresses=stores_compressed(self._facts.info)) as layer:
            yield layer

    def stop(self, key: JobKey, signal: Signal) -> None:
        name = container_name(self._server, key)
        self._exit_events.note_signal(name)
        with self.engine.api() as api, _accept_refusals(_MISSING, _CONFLICT):
            api.kill(name, signal.value)

    def remove(self, key: JobKey) -> None:
        with self.engine.api(patient=True) as api, _accept_refusals(_MISSING, _CONFLICT):
            api.remove_container(container_name(self._server, key), v=True, force=True)

    def release(self, experiment: int) -> None:
        if self._shares.pop(experiment, None) is None:
            with self.engine.api() as api:
                self._networks.remove(api, experiment, self._stuck)

    def _find_renamed_network(self, api: docker.APIClient, launch: Launch) -> str | None:
        """Return the id of the experiment's network where a network that was written off holds its name."""
        written_off = self._stuck.written_off()
        networks = find_networks(api, self._server, launch.key.experiment, written_off) if written_off else []
        return next(iter(networks), None)

    def read_log(self, key: JobKey, cursor: LogCursor, *, follow: bool) -> Iterator[list[Frame]]:
        with self.engine.stream() as api:
            yield from read_log_frames(api, container_name(self._server, key), cursor, follow=follow)

    def sample(self, key: JobKey) -> Iterator[Sample]:
        return self._meters.sample(key)

    def changes(self) -> Iterator[None]:
        server_label = labels.label_filter(labels.SERVER, self._server)
        filters = {"label": server_label, "event": ["die", "start", "destroy", "oom"]}
        with self.engine.stream() as api, closing(api.events(filters=filters, decode=True)) as events:
            remove_written_off(api, self._stuck)  # an engine that has restarted can remove them now
            running = [str(row["Id"]) for row in api.containers(filters={"label": server_label})]
            threading.Thread(target=self._end_forgotten, args=(running,), name="forgotten", daemon=True).start()
            with self._note_break():
                for event in events:
                    self._exit_events.note_event(event)
                    yield

    @contextmanager
    def _note_break(self) -> Iterator[None]:
        """Note an outage when the engine ends the stream of events: a running engine never ends it."""
        try:
            yield
        except GeneratorExit:  # the server has closed the generator
            raise
        except Exception:
            self._outages = self._outages.mark_away(_now())
            raise
        self._outages = self._outages.mark_away(_now())

    def _end_forgotten(self, running: list[str]) -> None:
        """End and remove leftovers of a server that was killed. Events do not wait for it: it has its own thread."""
        for find_forgotten in (self._builds.find_forgotten, self._helpers.remove_forgotten):
            try:
                with self.engine.api(patient=True) as api:
                    find_forgotten(api)
            except RisemlError as error:
                log.warning("what an earlier server left on host %s is removed later: %s", self.name, error.message)
        end_forgotten_commands(self.engine, running)


@contextmanager
def _accept_refusals(*codes: int) -> Iterator[None]:
    """Ignore refusals with these HTTP statuses: the requested state exists already."""
    try:
        yield
    except APIError as error:
        if error.status_code not in codes:
            raise


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
