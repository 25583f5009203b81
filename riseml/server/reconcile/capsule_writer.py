"""Capsules: written when an experiment gets its output folder, completed when its hosts are released.

A capsule delays the end of an experiment by at most 20 seconds, while its results cannot be read. When the files in the
output cannot be written, the server logs that, and still keeps its own copy of the capsule.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice
from pathlib import Path

from riseml import wire
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.errors import RisemlError, StoreError
from riseml.base.faultpoints import Point, reach
from riseml.base.names import HostName
from riseml.diagnosis.report import list_diagnosis_files
from riseml.files.archives.project_files import write_tar
from riseml.files.storage.capsule_files import CapsuleFiles, write_capsule_files
from riseml.files.storage.outputs import RECORD, describe_run, show_output
from riseml.model import Experiment, Gpu
from riseml.planning.capsule import Circumstances, ShownConfig, make_capsule, show_config, write_capsule
from riseml.planning.launch import job_folders, output_folder
from riseml.server.clock import now
from riseml.server.data.team_data import MOUNTED, find_user_folder
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.storage_mounts import describe_root
from riseml.spec.pool.types import Volume
from riseml.store.capsules import CapsuleStore
from riseml.store.diagnoses import DiagnosisStore
from riseml.store.projects.snapshots import SnapshotStore
from riseml.wire.capsules import CAPSULE_FILE, CAPSULE_FOLDER, CODE_FILE, MOST_CODE

_MOST_ENTRIES = 1000  # names of the data folder
_LATE_RESULTS = timedelta(seconds=20)  # time after the end of an experiment for which its capsule waits for the results

log = logging.getLogger(__name__)

ReadAnnotation = Callable[[Experiment], Annotation]
ReadResults = Callable[[int], Mapping[str, wire.MetricView]]

_FileMark = tuple[int, int]
"""The inode of a file, and the time of its last change in nanoseconds."""


class CapsuleWriter:
    """Makes capsules and writes them. Safe from many threads.

    Args:
        hosts: ran the jobs.
        snapshots: have the projects' files.
        capsules: the server's own copies.
        read_results: returns what the jobs of an experiment have reported.
        read_annotation: returns what users say about an experiment and its set.
        version: of riseml.
        diagnoses: why experiments made no progress; a diagnosis is written beside the record. None: nothing knows it.
    """

    def __init__(
        self,
        hosts: HostSet,
        snapshots: SnapshotStore,
        capsules: CapsuleStore,
        read_results: ReadResults,
        read_annotation: ReadAnnotation,
        version: str,
        diagnoses: DiagnosisStore | None = None,
    ) -> None:
        self._hosts = hosts
        self._snapshots = snapshots
        self._capsules = capsules
        self._read_results = read_results
        self._read_annotation = read_annotation
        self._version = version
        self._diagnoses = diagnoses
        self._packages: dict[str, tuple[str, ...] | None] = {}  # packages of environments, by reference
        self._asking: dict[str, threading.Lock] = {}  # by reference: one thread at a time asks a host for packages
        self._begun: dict[int, _FileMark | None] = {}  # inode and ctime of the code in each output, by experiment
        self._beginning: dict[int, threading.Lock] = {}  # by experiment: one thread at a time begins its capsule

    def begin_capsule(self, experiment: Experiment, config: str) -> CapsuleFiles | None:
        """Return the capsule of an experiment that is about to start; None for one that trains nothing."""
        if experiment.plan.companion is not None:
            return None
        code = self._read_code(experiment)
        around = self._read_circumstances(experiment, self._list_data(experiment), has_code=code is not None)
        return CapsuleFiles(self._keep_capsule(experiment, make_capsule(experiment, show_config(config), around)), code)

    def begin_in_output(self, root: Path, experiment: Experiment, config: str) -> None:
        """Begin a capsule, and write it below the root of outputs on this machine."""
        with self._beginning.setdefault(experiment.id, threading.Lock()):
            self._begin_in_output(root, experiment, config)

    def ensure_begun(self, root: Path, experiment: Experiment, read_config: Callable[[], str]) -> None:
        """Begin a capsule in an output that lacks it: a server may have been killed while it wrote it."""
        if experiment.id in self._begun:
            return
        with self._beginning.setdefault(experiment.id, threading.Lock()):
            if experiment.id not in self._begun and not self._has_files(root, experiment):
                self._begin_in_output(root, experiment, read_config())
            self._begun.setdefault(experiment.id)

    def _begin_in_output(self, root: Path, experiment: Experiment, config: str) -> None:
        self.write_files(root, experiment, self.begin_capsule(experiment, config))
        self._begun[experiment.id] = _mark_code(root, experiment)

    def _has_files(self, root: Path, experiment: Experiment) -> bool:
        """Return True when the server and the output both have the capsule; capsule.json is written last."""
        path = root / output_folder(experiment) / CAPSULE_FOLDER / CAPSULE_FILE
        return self._capsules.load_capsule(experiment.id) is not None and path.is_file()

    def complete_capsule(self, experiment: Experiment, config: str, root: Path | None) -> CapsuleFiles | None:
        """Return the capsule of an experiment that has ended, and its record with the results; None when it has no
        capsule. The project's files are among them where a job may have changed or removed them.

        Args:
            experiment: its record.
            config: the text of its riseml.yml.
            root: of outputs on this machine; None: the output is on another one.

        Raises:
            StoreError: the results cannot be read now, and the experiment has only just ended: a later try writes them,
                too.
        """
        begun = self._begun.pop(experiment.id, None)
        self._beginning.pop(experiment.id, None)
        before = self._capsules.load_capsule(experiment.id)
        if before is None:
            return None
        capsule = self._renew(experiment, before)
        if not self._has_results(experiment):
            noticed = experiment.ended_at if experiment.verdict is None else experiment.verdict.at
            if noticed is not None and now() - noticed < _LATE_RESULTS:
                raise StoreError(
                    f"the results of experiment {experiment.number} cannot be read yet", "they are read again"
                )
            capsule = {**capsule, "complete": False}  # later requests get the capsule with the results
        record = describe_run(experiment, config, capsule["results"]).encode()
        is_whole = root is not None and begun is not None and _mark_code(root, experiment) == begun
        code = None if is_whole or not capsule["code"]["included"] else self._read_code(experiment)
        diagnosis = None if self._diagnoses is None else self._diagnoses.load_diagnosis(experiment.id)
        beside = ((RECORD, record), *(() if diagnosis is None else list_diagnosis_files(diagnosis)))
        return CapsuleFiles(self._keep_capsule(experiment, capsule), code, beside=beside)

    def show_capsule(self, experiment: Experiment, config: str) -> wire.Capsule:
        """Return the capsule of an experiment as it is now, also of one that never got an output folder."""
        before = self._capsules.load_capsule(experiment.id)
        if before is not None and before["complete"]:
            annotation = self._find_annotation(experiment)  # it may be another one than at the end
            return {**before, "name": annotation.name, "tags": list(annotation.tags), "note": annotation.note}
        if before is not None:
            return self._renew(experiment, before)
        around = self._read_circumstances(experiment, self._list_data(experiment))
        return make_capsule(experiment, show_config(config), around)

    def list_env(self, experiment: Experiment) -> list[str]:
        """Return the names in `env` of an experiment, as far as its capsule is kept."""
        capsule = self._capsules.load_capsule(experiment.id)
        return [] if capsule is None else [*capsule["variables"]["passed"], *capsule["variables"]["written"]]

    def write_files(self, root: Path, experiment: Experiment, files: CapsuleFiles | None) -> None:
        """Write a capsule below the root of outputs on this machine."""
        if files is None:
            return
        try:
            write_capsule_files(root, experiment, files)
        except (OSError, RisemlError) as error:
            log.warning("the capsule of %s is not in its output: %s", experiment.id, error)

    def _renew(self, experiment: Experiment, before: wire.Capsule) -> wire.Capsule:
        """Return a capsule with the present record, and the circumstances of its beginning."""
        around = self._read_circumstances(experiment, before["data"], has_code=before["code"]["included"])
        after = make_capsule(experiment, ShownConfig(before["config"], before["variables"]), around)
        former_hosts = {host["name"]: host for host in before["hosts"]}
        hosts = [host if host["runs"] else former_hosts.get(host["name"], host) for host in after["hosts"]]
        return {**after, "hosts": hosts}

    def _keep_capsule(self, experiment: Experiment, capsule: wire.Capsule) -> str:
        text = write_capsule(capsule)
        try:
            self._capsules.save_capsule(experiment.id, text)
        except OSError as error:
            log.warning("the capsule of %s is not kept: %s", experiment.id, error)
        reach(Point.CAPSULE_KEPT)
        return text

    def _read_circumstances(
        self, experiment: Experiment, data: wire.CapsuleData, *, has_code: bool = False
    ) -> Circumstances:
        target = self._hosts.find_target(next((job.host for job in experiment.gang if job.host is not None), None))
        return Circumstances(
            riseml=self._version,
            output=show_output(target.roots, experiment),
            folders=job_folders(experiment, target),
            hosts=tuple(self._describe_hosts(experiment)),
            data=data,
            packages=dict(self._find_packages(experiment)),
            has_code=has_code,
            results=self._find_results(experiment),
            annotation=self._find_annotation(experiment),
        )

    def _find_annotation(self, experiment: Experiment) -> Annotation:
        """Return what users say about an experiment and its set; nothing when it cannot be read."""
        try:
            return self._read_annotation(experiment)
        except (OSError, RisemlError) as error:
            log.warning("what users say about %s is not in its capsule: %s", experiment.id, error)
            return NO_ANNOTATION

    def _has_results(self, experiment: Experiment) -> bool:
        """Return True when the results of the jobs can be read."""
        try:
            self._read_results(experiment.id)
        except Exception:  # noqa: BLE001  # `_find_results` has said why
            return False
        return True

    def _find_results(self, experiment: Experiment) -> Mapping[str, wire.MetricView]:
        """Return the results of the jobs; empty when they cannot be read."""
        try:
            return self._read_results(experiment.id)
        except (OSError, RisemlError) as error:
            log.warning("the results of %s are not in its capsule: %s", experiment.id, error)
        except Exception:
            log.exception("the results of %s are not in its capsule", experiment.id)
        return {}

    def _describe_hosts(self, experiment: Experiment) -> Iterable[wire.CapsuleHost]:
        executors = self._hosts.pool.executors
        last_seen = self._hosts.last_seen()
        by_host: dict[HostName, list[str]] = {}
        for job in experiment.gang:
            if job.host is not None:
                by_host.setdefault(job.host, []).extend(job.gpus)
        for name, ids in sorted(by_host.items()):
            executor = executors.get(name)
            lister = None if executor is None else executor.capabilities.machines
            machines = () if lister is None else lister.list_machines(experiment.id)
            if machines:
                yield from (_describe_machine(machine.name, machine.runs, machine.gpus) for machine in machines)
                continue
            devices = last_seen[name].devices if name in last_seen else {}
            runs = executor.describe() if executor is not None else ""
            yield _describe_machine(name, runs, [devices[identity] for identity in ids if identity in devices])

    def _list_data(self, experiment: Experiment) -> wire.CapsuleData:
        host = next((job.host for job in experiment.gang if job.host is not None), None)
        root = self._hosts.find_target(host).roots.data
        if isinstance(root, Volume):
            return {"folder": describe_root(root), "entries": None}
        folder = Path(root)
        is_seen = host is not None and self._hosts.is_this_machine(host)
        if self._hosts.rules is None:
            return {"folder": root, "entries": list_entries(folder) if is_seen else None}
        folder /= find_user_folder(experiment.owner.user)
        # others see the capsule of an experiment of a team project, and not the data of its user
        entries = list_entries(folder) if is_seen and experiment.team_project is None else None
        names = None if entries is None else [name for name in entries if name not in MOUNTED]
        return {"folder": str(folder), "entries": names}

    def _find_packages(self, experiment: Experiment) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the packages of each environment. Hosts are asked once for each environment, when the experiment has
        ended."""
        for job in experiment.gang:
            image = experiment.image_of(job.name)
            if not image.install or job.host is None:
                continue
            if experiment.ended_at is None:
                packages = self._packages.get(image.reference)
            else:
                with self._asking.setdefault(image.reference, threading.Lock()):
                    packages = self._ask_for_packages(job.host, image.reference)
            if packages is not None:
                yield image.reference, packages

    def _ask_for_packages(self, host: HostName, reference: str) -> tuple[str, ...] | None:
        """Return the packages of an environment: as they are known already, or from a host that has it."""
        if reference in self._packages:
            return self._packages[reference]
        executor = self._hosts.pool.executors.get(host)
        lister = None if executor is None else executor.capabilities.packages
        if lister is None:
            return None
        try:
            packages = lister.list_packages(reference)
        except RisemlError as error:
            log.warning("the packages of %s are not known: %s", reference, error.message)
            return None
        self._packages[reference] = packages
        return packages

    def _read_code(self, experiment: Experiment) -> bytes | None:
        """Return the project's archive when it is small enough."""
        if not experiment.snapshot:
            return None
        try:
            if self._snapshots.measure_files(experiment.snapshot) > MOST_CODE:
                return None
            files = self._snapshots.find_files(experiment.snapshot)
            return None if files is None else join_archive(write_tar(files))
        except (OSError, RisemlError) as error:
            log.warning("the files of %s are not in its capsule: %s", experiment.id, error)
            return None


def _mark_code(root: Path, experiment: Experiment) -> _FileMark | None:
    """Return inode and ctime of the code archive in an output, so that a change by a job is noticed; None: there is
    none. Only the kernel sets a ctime.
    """
    try:
        status = (root / output_folder(experiment) / CAPSULE_FOLDER / CODE_FILE).lstat()
    except OSError:
        return None
    return (status.st_ino, status.st_ctime_ns) if stat.S_ISREG(status.st_mode) else None


def _describe_machine(name: str, runs: str, gpus: Iterable[Gpu]) -> wire.CapsuleHost:
    gpu_rows: list[wire.CapsuleGpu] = [
        {"id": gpu.id, "name": gpu.name, "mem_mib": gpu.mem, "driver": gpu.driver} for gpu in gpus
    ]
    return {"name": name, "runs": runs, "gpus": gpu_rows}


def join_archive(pieces: Iterable[bytes]) -> bytes | None:
    """Return an archive; None: it is empty, or larger than `MOST_CODE`. Many small files make a large one, too."""
    archive = bytearray()
    for piece in pieces:
        archive += piece
        if len(archive) > MOST_CODE:
            return None
    return bytes(archive) or None


def list_entries(folder: Path) -> list[str] | None:
    """Return the first names in a folder, sorted; None: it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = [os.fsencode(entry.name).decode("utf-8", "replace") for entry in islice(entries, _MOST_ENTRIES)]
    except FileNotFoundError:
        return []
    except OSError:
        return None
    return sorted(names)
