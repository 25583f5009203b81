"""Execute one action. The actor raises errors; the tracker remembers them for the next pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from riseml.base.errors import DiskFull, EngineError, Refused, RisemlError, StoreError, Unreachable
from riseml.base.faultpoints import Point, reach
from riseml.base.names import BUILD, HostName
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL
from riseml.control.actions import (
    Action,
    CancelData,
    CancelImage,
    CancelRestore,
    CopyData,
    CopyImage,
    Disk,
    EnsureImage,
    FetchData,
    InheritOutput,
    PrepareHost,
    ReleaseHost,
    RestoreOutput,
    SaveOutput,
    StartGang,
    StartJob,
)
from riseml.control.images import choose_image
from riseml.executors.base import (
    BuildRequest,
    Cancellation,
    DataGone,
    Executor,
    HostSetup,
    Output,
    Report,
    Work,
    WorkReport,
)
from riseml.executors.gangs import make_gang_request
from riseml.executors.this_machine.disk_use import find_full_disk
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.storage.capsule_files import pack_capsule_files
from riseml.files.storage.outputs import pack_output, prepare_data, prepare_output
from riseml.model import Experiment, Frame, Image, JobKey, Launch, Mount
from riseml.planning.launch import LaunchTarget, make_launch
from riseml.server.clock import stamp
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.disk_reclaimer import CACHE, HOME, DiskReclaimer, DiskTrouble, DiskWatch
from riseml.server.data.team_data import (
    find_data_user,
    list_job_sources,
    list_job_spaces,
    prepare_job_data,
    prepare_spaces,
)
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.registry_logins import RegistryLogins
from riseml.server.reconcile.activities import Activities, name_data
from riseml.server.reconcile.capsule_writer import CapsuleWriter
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.run_secrets import RunSecrets
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.projects.snapshots import SnapshotStore

_MOST_BESIDE = 16  # threads that write a capsule while a host is prepared

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _RunningBuild:
    """A build under way."""

    cancellation: Cancellation
    watch: DiskWatch  # watches the disk of its host


def _make_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_BESIDE, thread_name_prefix="capsule")


@dataclass(frozen=True, slots=True)
class Actor:
    """Carries out actions, as their `Performer`; several threads use it at the same time."""

    server: str  # id of this server
    hosts: HostSet
    experiments: ExperimentStore
    logs: LogStore  # gets the output of builds
    snapshots: SnapshotStore  # states of projects
    notifier: Notifier
    activities: Activities  # the progress of builds and transfers, for users
    capsules: CapsuleWriter  # capsules: everything that another run of an experiment needs
    data: DataFetcher  # the data that experiments name, and the outputs that they save
    disks: DiskReclaimer  # makes room on full disks
    secrets: RunSecrets  # what jobs get when they start
    registries: RegistryLogins  # the credentials with which images are pulled
    check_claim: Callable[[], None] = lambda: None  # raises a StoreError while another server may act
    builds: dict[EnsureImage, _RunningBuild] = field(default_factory=dict)  # the builds under way
    beside: ThreadPoolExecutor = field(default_factory=_make_threads)  # for what a thread of an action waits for

    def perform(self, action: Action, experiment: Experiment | None) -> None:
        """Carry out one action.

        Args:
            action: what to do.
            experiment: the record that the action belongs to; None when the experiment is closed.

        Raises:
            RisemlError: the action failed, or its effect is unknown.
        """
        reach(Point.ACTING)
        if action.point_before is not None:
            reach(action.point_before)
        with nullcontext() if experiment is None else self.secrets.mask_failures(experiment.id):
            self._perform_with_room(action, experiment)
        if action.point_after is not None:
            reach(action.point_after)
        reach(Point.ACTED)

    def _perform_with_room(self, action: Action, experiment: Experiment | None) -> None:
        """Carry out one action; where it fails because a disk is full, make room, and carry it out once more if
        something went."""
        watch = self.disks.open_watch(CACHE if action.fills is Disk.CACHE else action.host)
        if isinstance(action, EnsureImage):
            self.builds[action] = _RunningBuild(Cancellation(), watch)
        try:
            self._perform_on_host(action, experiment)
        except RisemlError as error:
            if experiment is None or not self._make_room(action, experiment, error, watch):
                raise
            self._perform_on_host(action, experiment)
        finally:
            if isinstance(action, EnsureImage):
                self.builds.pop(action, None)

    def _perform_on_host(self, action: Action, experiment: Experiment | None) -> None:
        self.check_claim()
        self.find_host(action.host)  # raises for a host that has left the pool, whatever the action asks of it
        action.perform(self, experiment)

    def _make_room(self, action: Action, experiment: Experiment, error: RisemlError, watch: DiskWatch) -> bool:
        """Make room on the disk that was full when an action failed; return True when something went."""
        cause = find_full_disk(error)
        build = self.builds.get(action) if isinstance(action, EnsureImage) else None
        if (cause is None and not watch.is_suspect) or (build is not None and build.cancellation.asked):
            return False
        if isinstance(error, StoreError):
            watch = self.disks.open_watch(HOME)
        # other actions also write to the disk of outputs, which may be another one
        is_certain = isinstance(cause, DiskFull) and action.fills is not None
        trouble = self.disks.make_room_after(watch, is_certain=is_certain)
        if trouble is not None:
            self._note_full_disk(experiment, trouble)
        return trouble is not None and trouble.removed > 0

    def _note_full_disk(self, experiment: Experiment, trouble: DiskTrouble) -> None:
        """Say in the log of an experiment that a disk was full, and what was done about it."""
        key = JobKey(experiment.id, BUILD, 1)
        try:
            self.logs.append_frames(key, [Frame(stamp(), 1, f"{trouble.text}\n".encode())])
            self.logs.finish_job(key)
        except OSError as error:  # this disk is full, too
            log.warning("%s; the log of %s cannot say so: %s", trouble.text, experiment.id, error.strerror)
        self.notifier.publish_lines(experiment.id)

    def find_host(self, name: HostName) -> Executor:
        """Return the executor of a host.

        Raises:
            Unreachable: the host is no longer in the pool.
        """
        executor = self.hosts.pool.executors.get(name)
        if executor is None:
            raise Unreachable(
                f"host {name} is no longer in the pool", "put it back into pool.yml, or kill what runs there"
            )
        return executor

    def release_host(self, action: ReleaseHost, experiment: Experiment | None) -> None:
        """Write the end of an experiment into its output on a host, then remove what its jobs shared there."""
        if experiment is not None and experiment.state in TERMINAL:
            self._complete_capsule(action.host, experiment)
        self.find_host(action.host).release(action.experiment)

    def start_job(self, action: StartJob, experiment: Experiment) -> None:
        """Start one job, with its capsule and its data in place."""
        executor = self.find_host(action.host)
        target, code = self._begin_start(action.host, executor, experiment)
        job = next(job for job in experiment.jobs if job.name == action.key.job)
        with self._note_lost_data(action.host):
            opened = self.secrets.open_run(experiment)
            launch = opened.add_files(make_launch(opened.experiment, job, target))
            executor.start(self._add_keys(launch, experiment), code)

    def start_gang(self, action: StartGang, experiment: Experiment) -> None:
        """Hand a gang over to its host."""
        executor = self.find_host(action.host)
        runner = executor.capabilities.gangs
        if runner is None:
            raise EngineError(f"{executor.name} does not start gangs as one thing", permanent=True)
        target, code = self._begin_start(action.host, executor, experiment)
        opened = self.secrets.open_run(experiment)
        gang = make_gang_request(opened.experiment, target, lambda launch: self._add_keys(launch, experiment))
        runner.start_gang(gang, code)

    def copy_data(self, action: CopyData, experiment: Experiment) -> None:
        """Copy data to a host, and report how far it is."""
        with self.activities.open_activity(action.host, name_data(experiment.id)) as report:
            self.data.copy_data(experiment, action.host, report)

    def cancel_data(self, action: CancelData) -> None:
        """Ask a fetch of data or a copy to end."""
        self.data.cancel_fetch(action.experiment, action.host)

    def save_output(self, action: SaveOutput, experiment: Experiment) -> None:
        """Copy an output into its store."""
        self.data.saves.save_output(experiment, action.host, action.last)
        self.notifier.publish_records(experiment.id)

    def restore_output(self, action: RestoreOutput, experiment: Experiment) -> None:
        """Fill an output from its store, and report how far it is."""
        with self.activities.open_activity(action.host, name_data(experiment.id)) as report:
            self.data.saves.restore_output(experiment, action.host, report)

    def inherit_output(self, action: InheritOutput, experiment: Experiment) -> None:
        """Fill the output of a trial with the files of its parent, and report how far it is."""
        lineage = experiment.plan.lineage
        if lineage is None or lineage.parent_record is None:
            raise EngineError(f"trial {experiment.sub} has no parent", permanent=True)
        parent = self.experiments.get_experiment(lineage.parent_record).experiment
        with self.activities.open_activity(action.host, name_data(experiment.id)) as report:
            self.data.saves.inherit_output(experiment, parent, action.host, report)

    def cancel_restore(self, action: CancelRestore) -> None:
        """Ask a restoration, or the copy of a parent's files, to end."""
        self.data.saves.cancel_restore(action.experiment)

    def _begin_start(
        self, host: HostName, executor: Executor, experiment: Experiment
    ) -> tuple[LaunchTarget, ProjectFiles | None]:
        """Make sure that the capsule exists; return how jobs on the host see the storage, and the project's files."""
        root = self._find_own_root(host, experiment)
        if root is not None:
            self.capsules.ensure_begun(root, experiment, lambda: self._read_config(experiment))
        view = self.data.find_view(experiment, host)
        target = LaunchTarget(self.server, self.hosts.roots, executor.contained, view)
        return target, None if experiment.reads else self._find_files(experiment)

    @contextmanager
    def _note_lost_data(self, host: HostName) -> Iterator[None]:
        """Note that a host has lost a copy of data, so that the next pass copies it again."""
        try:
            yield
        except DataGone:
            self.data.copies.find_lost(host)
            raise

    def _add_keys(self, launch: Launch, experiment: Experiment) -> Launch:
        """Return the launch with the keys of the store that the experiment asks for; `env` of riseml.yml comes first.

        The keys are read from the user's file at each launch, so that no plan and no record contains them.
        """
        own = {name for name, _ in launch.environment}
        keys = tuple(pair for pair in self.data.list_variables(experiment) if pair[0] not in own)
        return replace(launch, environment=(*launch.environment, *keys)) if keys else launch

    def fetch_data(self, action: FetchData, experiment: Experiment) -> None:
        """Fetch data into the cache; the log of the build names its sources."""
        key = JobKey(experiment.id, BUILD, 1)
        with _log_errors_translated():
            for source in experiment.plan.policy.data:
                line = f"Data: {source.url} as {source.folder}\n".encode()
                self.logs.append_frames(key, [Frame(stamp(), 1, line)])
        self.notifier.publish_lines(experiment.id)
        try:
            with self.activities.open_activity(action.host, name_data(experiment.id)) as report:
                self.data.fetch_data(experiment, report)
        finally:
            with _log_errors_translated():
                self.logs.finish_job(key)
            self.notifier.publish_records(experiment.id)

    def prepare_host(self, action: PrepareHost, experiment: Experiment) -> None:
        """Create what the jobs share on a host. Where the server sees its files, it writes the capsule meanwhile.

        The network is the sign that a host is prepared, also for the next server after this one was killed. So the
        output folder is made before the network. The capsule may be missing then: each start makes sure of it.
        """
        host = action.host
        executor = self.find_host(host)
        root = self._find_own_root(host, experiment)
        config = self._read_config(experiment)
        if root is None:
            executor.prepare(self._make_share(host, experiment, action.subnet, config))
            return
        prepare_output(root, experiment, config)
        if isinstance(self.hosts.roots.data, str):
            self._prepare_data(Path(self.hosts.roots.data), experiment, contained=executor.contained)
        written = self.beside.submit(self.capsules.begin_in_output, root, experiment, config)
        try:
            executor.prepare(self._make_share(host, experiment, action.subnet, config))
        finally:
            wait([written])
        written.result()

    def _prepare_data(self, root: Path, experiment: Experiment, *, contained: bool) -> None:
        """Make the folders that the jobs of an experiment read as /data, where they are missing."""
        if self.hosts.rules is None:
            prepare_data(root)
        elif not contained:
            prepare_spaces(root, list_job_spaces(find_data_user(experiment), experiment.team_project))
        else:
            prepare_job_data(root, find_data_user(experiment), experiment.team_project)

    def _list_space_mounts(self, experiment: Experiment) -> tuple[Mount, ...]:
        """Return the mounts with which a host makes the folders that the jobs of a team's experiment read."""
        root = self.hosts.roots.data
        if self.hosts.rules is None or not isinstance(root, str):
            return ()
        sources = list_job_sources(find_data_user(experiment), experiment.team_project)
        return tuple(
            Mount(f"{root}/{source}", f"/spaces/{place}", read_only=True, makes=True)
            for place, source in enumerate(sources)
        )

    def _find_own_root(self, host: HostName, experiment: Experiment) -> Path | None:
        """Return the root of outputs when the server itself makes the experiment's folder; None when the host makes it.

        A companion that reads outputs has no output of its own.
        """
        root = self.hosts.roots.output
        is_own = not experiment.reads and isinstance(root, str) and self.hosts.is_this_machine(host)
        return Path(str(root)) if is_own else None

    def _read_config(self, experiment: Experiment) -> str:
        return self.experiments.read_config(experiment.id)

    def _make_share(self, host: HostName, experiment: Experiment, subnet: str | None, config: str) -> HostSetup:
        """Return what the jobs share on a host, with their output where the server does not make it itself."""
        output: Output | None = None
        if not experiment.reads and self._find_own_root(host, experiment) is None:
            root, other_mounts = self.hosts.find_mounts()
            capsule = self.capsules.begin_capsule(experiment, config)
            spaces = self._list_space_mounts(experiment)
            output = Output(root, pack_output(experiment, config, capsule), (*other_mounts, *spaces))
        creates_network = experiment.network_host in (None, host)
        return HostSetup(experiment.id, subnet, experiment.network, creates_network, self.hosts.encrypted, output)

    def _complete_capsule(self, host: HostName, experiment: Experiment) -> None:
        """Write the end of the experiment into its output on a host. An error there does not delay its end.

        Raises:
            Unreachable: the host does not answer.
        """
        if experiment.reads:
            return
        executor = self.find_host(host)
        own = self._find_own_root(host, experiment)
        outputs = executor.capabilities.outputs
        files = self.capsules.complete_capsule(experiment, self._read_config(experiment), own)
        if own is not None:
            self.capsules.write_files(own, experiment, files)
        elif files is not None and outputs is not None:
            root, _ = self.hosts.find_mounts()
            try:
                outputs.update_output(experiment.id, Output(root, pack_capsule_files(experiment, files)))
            except EngineError as error:
                log.warning("the capsule of %s is not in its output: %s", experiment.id, error.message)

    def copy_image(self, action: CopyImage) -> None:
        """Move an environment through the pool's registry, or without one from host to host."""
        reference = action.reference
        target = self.find_host(action.host)
        source = self.find_host(action.source)
        images = target.capabilities.images
        source_images = source.capabilities.images
        if images is None or source_images is None:
            raise EngineError(f"environments do not move from {source.name} to {target.name}", permanent=True)
        registry = self.hosts.registry
        with self.activities.open_activity(target.name, reference) as report:
            if registry is None:
                pieces = _count_pieces(
                    source_images.export_image(reference), reference, source_images.measure_image(reference), report
                )
                images.import_image(reference, pieces)
            else:
                images.fetch_image(reference, source_images.publish_image(reference, registry, report), report)

    def cancel_image(self, action: CancelImage) -> None:
        """Ask a build to end; does nothing when it is not under way."""
        build = self.builds.get(EnsureImage(action.host, action.experiment, action.reference))
        if build is not None:
            build.cancellation.ask()

    def ensure_image(self, action: EnsureImage, experiment: Experiment) -> None:
        """Build or fetch an environment; its output is the log of the build."""
        build = self.builds[action]
        key = JobKey(experiment.id, BUILD, 1)

        def emit(line: str) -> None:
            reach(Point.BUILDING)
            build.watch.note_line(line)
            with _log_errors_translated():
                masked_line = self.secrets.mask_text(experiment.id, line)
                self.logs.append_frames(key, [Frame(stamp(), 1, masked_line.encode() + b"\n")])
            self.notifier.publish_lines(experiment.id)

        try:
            image = choose_image(experiment, action.reference)
            self._check_image(image)
            with self.activities.open_activity(action.host, action.reference) as report:
                files = self._find_files(experiment)
                read_lines = partial(self._read_build_lines, experiment)
                login = self.registries.find_run_login(experiment, image.base)
                request = BuildRequest(image, files, emit, build.cancellation, report, read_lines, login)
                self.find_host(action.host).ensure_image(request)
        finally:
            with _log_errors_translated():
                self.logs.finish_job(key)  # after the last line of its output
            self.notifier.publish_records(experiment.id)

    def _check_image(self, image: Image) -> None:
        """Check that the admin of a team's server still allows an image, whenever its submission was accepted.

        Raises:
            EngineError: not any more (permanent).
        """
        if self.hosts.rules is not None:
            try:
                self.hosts.rules.check_image(image.base)
            except Refused as error:
                raise EngineError(error.message, error.hint, permanent=True) from None

    def _read_build_lines(self, experiment: Experiment) -> list[str]:
        with _log_errors_translated():
            lines = read_all_lines(self.logs, experiment.id)
            return [line.text.decode("utf-8", "replace") for line in lines if line.job == BUILD]

    def _find_files(self, experiment: Experiment) -> ProjectFiles | None:
        """Return the project's files; None when the experiment has none."""
        if not experiment.snapshot:
            return None
        files = self.snapshots.find_files(experiment.snapshot)
        if files is None:
            raise EngineError(
                f"the project's files {experiment.snapshot[:12]} are gone from the server",
                "run `riseml train` again: it sends them",
                permanent=True,
            )
        return files


def _count_pieces(pieces: Iterator[bytes], reference: str, total: int | None, report: Report) -> Iterator[bytes]:
    """Yield the pieces of an environment, and report how many bytes have passed."""
    sent = 0
    for piece in pieces:
        yield piece
        sent += len(piece)
        report(WorkReport(Work.SEND, reference, sent, None if total is None else max(total, sent)))


@contextmanager
def _log_errors_translated() -> Iterator[None]:
    """Raise errors of the build's log file as errors of the store, which are not errors of the engine."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the log of the build cannot be written: {error.strerror}", "free some space in RISEML_HOME"
        ) from error
