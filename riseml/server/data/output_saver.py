"""The outputs that experiments save in stores: copies, and the notes about them. Also what fills an output before jobs
start: the restore for another attempt, and the files of a trial's parent.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from riseml.base.errors import EngineError, NotFound, Refused, RisemlError, advise_on_write
from riseml.base.names import CanonicalId, HostName, experiment_name
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL
from riseml.control.observation import SaveObservation
from riseml.control.saving import find_attempt
from riseml.data_stores.restore_output import RestoreRequest, restore_output
from riseml.data_stores.save_manifest import SaveManifest, measure_files
from riseml.data_stores.save_notes import RestoreNote, SaveNote, SaveNotes
from riseml.data_stores.save_output import (
    DestinationInUse,
    KnownFiles,
    SavePlace,
    SaveResult,
    SaveTask,
    claim_place,
    save_output,
)
from riseml.data_stores.save_target import SaveTarget, open_target
from riseml.data_stores.store_file import Store, add_passed_keys, check_passed, find_save_store, read_stores
from riseml.executors.base import Report, Work, WorkCancelled, WorkReport
from riseml.files.storage.folder_copy import FolderCopy, copy_folder
from riseml.files.storage.outputs import RECORD
from riseml.files.storage_files import ListRequest, StorageFiles
from riseml.model import Environment, Experiment, Plan, World
from riseml.planning.launch import output_folder
from riseml.server.clock import now
from riseml.server.data.file_places import open_output
from riseml.server.hosts.host_set import HostSet
from riseml.server.log_line import LogLine, write_line
from riseml.spec.config.types import SaveSection
from riseml.spec.scalars.data_url import DataUrl, parse_data_url
from riseml.spec.scalars.globs import parse_glob
from riseml.store.sealed_variables import make_seals
from riseml.wire.capsules import CAPSULE_FOLDER

_FOLDER = "saves"
_SHORT_SERVER = 8  # characters of a server's id

log = logging.getLogger(__name__)

OpenTarget = Callable[[DataUrl, Store], SaveTarget]


@dataclass(frozen=True, slots=True)
class SaveProgress:
    """How far a copy is."""

    copied: int  # bytes
    total: int


class OutputSaver:
    """The saved outputs of a server.

    Args:
        server: id of this server.
        hosts: the hosts of this server.
        open_target: opens the folder of a store.
    """

    def __init__(self, server: str, hosts: HostSet, open_target: OpenTarget = open_target) -> None:
        self._server = server
        self._hosts = hosts
        self._open_target = open_target
        self.notes = SaveNotes(hosts.settings.home / _FOLDER)
        self._lock = threading.Lock()
        self._turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)  # one copy of an output at a time
        self._progress: dict[int, SaveProgress] = {}  # the progress of running copies
        self._moved: dict[int, datetime] = {}  # when something of an output last arrived in its store
        self._requested: set[int] = set()  # outputs whose copy a user has requested
        self._restoring: dict[int, threading.Event] = {}  # outputs that are being filled; set: that ends

    def check_plans(self, plans: Sequence[Plan], passed: Collection[str]) -> None:
        """Refuse addresses to which the server may not write. `passed` names the variables that the user passes on.

        Raises:
            RisemlError: with what to write, and where.
        """
        urls = {plan.policy.save.to for plan in plans if plan.policy.save is not None}
        stores = read_stores(self._hosts.settings.home) if urls else ()
        for url in sorted(urls):
            store = find_save_store(stores, parse_data_url(url))
            if self._hosts.rules is not None:
                self._hosts.rules.check_store(store.name, insecure=store.insecure)
            check_passed(store, passed)

    def find_saves(self, world: World) -> Mapping[int, SaveObservation]:
        """Return the state of the copies of open experiments."""
        open_ids = frozenset(experiment.id for experiment in world.experiments)
        self.notes.forget_except(open_ids)
        for closed in [experiment for experiment in list(self._moved) if experiment not in open_ids]:
            self._moved.pop(closed, None)
        saves: dict[int, SaveObservation] = {}
        for experiment in world.experiments:
            if experiment.plan.policy.save is not None:
                note = self.notes.read(experiment.id)
                saves[experiment.id] = SaveObservation(
                    note.saved_at, note.last, self._moved.get(experiment.id), note.given_up
                )
        return saves

    def find_filled(self, world: World) -> frozenset[int]:
        """Return the experiments whose output has been restored for their current attempt."""
        return frozenset(experiment.id for experiment in world.experiments if self._is_filled(experiment))

    def find_inherited(self, world: World) -> frozenset[int]:
        """Return the experiments whose output has the files of their parent, where their jobs are to start."""
        return frozenset(experiment.id for experiment in world.experiments if self._has_inherited(experiment))

    def read_note(self, experiment: Experiment) -> SaveNote:
        """Return the note about an output."""
        return self.notes.read(experiment.id)

    def read_progress(self, experiment: Experiment) -> SaveProgress | None:
        """Return how far the copy of an output is; None: none is under way."""
        is_asked = experiment.id in self._requested
        return self._progress.get(experiment.id, SaveProgress(0, 0) if is_asked else None)

    def is_busy(self) -> bool:
        """Return True while an output is copied, or a user waits for its copy."""
        return bool(self._requested or self._progress)

    def save_output(self, experiment: Experiment, host: HostName | None, last: int, keys: Environment = ()) -> None:
        """Copy an output into its store; return when its manifest names all of it.

        Args:
            experiment: its record.
            host: that has it.
            last: the attempt whose end this copy follows; 0: its jobs still run.
            keys: variables for this copy, in place of those that the experiment passed on.

        Raises:
            RisemlError: something cannot be used now (or never: permanent). What arrived counts for the next try.
        """
        with self._lock:
            turn = self._turns[experiment.id]
        with turn:
            self._progress[experiment.id] = SaveProgress(0, 0)
            try:
                self._save(experiment, host, last, keys)
            finally:
                self._progress.pop(experiment.id, None)

    def give_up(self, experiment: Experiment) -> None:
        """Wait no longer for the last copy of an experiment that has ended; does nothing while it runs.

        Raises:
            RisemlError: the server cannot note it.
        """
        if experiment.plan.policy.save is not None and experiment.state in TERMINAL and not experiment.closed:
            with self._translated():
                self.notes.give_up(experiment.id, find_attempt(experiment))

    def start_save(self, experiment: Experiment, keys: Environment = ()) -> None:
        """Start to copy an output now, whatever its experiment does; does nothing when a user has asked already.

        Args:
            experiment: its record.
            keys: as for `save_output`; the server keeps them in memory, until this copy has ended.
        """
        with self._lock:
            if experiment.id in self._requested:
                return
            self._requested.add(experiment.id)
        threading.Thread(target=self._save_asked, args=(experiment, keys), name="save-asked", daemon=True).start()

    def restore_output(self, experiment: Experiment, host: HostName, report: Report) -> None:
        """Restore an output before the jobs of an attempt start.

        Raises:
            WorkCancelled: `cancel_restore` was called.
            RisemlError: something cannot be used now (or never: permanent).
        """
        with self._fill(experiment) as stop:
            self._restore(experiment, host, report, stop)

    def inherit_output(self, experiment: Experiment, parent: Experiment, host: HostName, report: Report) -> None:
        """Copy the files of a trial's parent into its output, before its jobs start.

        Raises:
            WorkCancelled: `cancel_restore` was called.
            RisemlError: something cannot be used now (or never: permanent).
        """
        with self._fill(experiment) as stop:
            self._inherit(experiment, parent, host, report, stop)

    @contextmanager
    def _fill(self, experiment: Experiment) -> Iterator[threading.Event]:
        """Wait for the turn of an output, and fill it in the block, which ends when the event is set."""
        with self._lock:
            turn = self._turns[experiment.id]
        with turn, self._translated():
            stop = self._restoring[experiment.id] = threading.Event()
            try:
                yield stop
            finally:
                del self._restoring[experiment.id]

    def cancel_restore(self, experiment: int) -> None:
        """End what fills an output; does nothing while nothing does."""
        running = self._restoring.get(experiment)
        if running is not None:
            running.set()

    def _is_filled(self, experiment: Experiment) -> bool:
        save = experiment.plan.policy.save
        if save is None or not save.restore:
            return False
        note = self.notes.read(experiment.id)
        host = next((job.host for job in experiment.gang if job.host is not None), None)
        return note.attempt == find_attempt(experiment) and host in note.hosts

    def _has_inherited(self, experiment: Experiment) -> bool:
        lineage = experiment.plan.lineage
        if lineage is None or lineage.parent is None:
            return False
        host = next((job.host for job in experiment.gang if job.host is not None), None)
        inherited = self.notes.read(experiment.id).inherited
        return host in inherited or (self._hosts.shared_output and bool(inherited))

    def _save_asked(self, experiment: Experiment, keys: Environment) -> None:
        last = find_attempt(experiment) if experiment.state in TERMINAL else 0
        try:
            self.save_output(experiment, None, last, keys)
        except RisemlError as error:
            write_line(log, _describe(experiment, f"is not saved: {error.message}"), logging.WARNING)
        except Exception:
            log.exception("the copy of %s failed inside riseml", experiment.id)
        finally:
            with self._lock:
                self._requested.discard(experiment.id)

    def _save(self, experiment: Experiment, host: HostName | None, last: int, keys: Environment) -> None:
        save = _find_section(experiment)
        draft = _SaveNoteEditor(self.notes, experiment.id)
        if draft.now.attempt > find_attempt(experiment):
            return  # another attempt has begun meanwhile, perhaps on another host

        def open_place() -> SavePlace:
            place = self._find_place(experiment, draft.now.place, keys)
            draft.now = replace(draft.now, place=place.address)
            return place

        def progress(copied: int, total: int) -> None:
            self._progress[experiment.id] = SaveProgress(copied, total)
            self._moved[experiment.id] = now()

        try:
            with self._translated():
                if 0 < draft.now.filling <= find_attempt(experiment):
                    draft.skip(last)
                    return
                files = self._open_files(experiment, host)
                wants = _make_choice(save.only)
                task = SaveTask(
                    files, open_place, self._make_head(experiment), wants, _is_of_jobs, draft.note, progress
                )
                result = save_output(task, KnownFiles(draft.now.named, draft.now.loose, (), draft.now.is_swept))
                draft.finish(result, last)
        except RisemlError as error:
            draft.fail(error)
            raise

    def _restore(self, experiment: Experiment, host: HostName, report: Report, stop: threading.Event) -> None:
        note = self.notes.read(experiment.id)
        attempt = find_attempt(experiment)
        filled = replace(note, hosts=(host,), attempt=attempt, filling=0)
        files = self._open_files(experiment, host)
        is_last = note.filling == 0 and (self._hosts.shared_output or host in note.hosts)
        if attempt == 1 or (is_last and _has_any(files, note)):
            self.notes.write(experiment.id, filled)
            return
        self.notes.write(experiment.id, replace(note, filling=attempt))
        place = self._find_place(experiment, note.place)

        def progress(copied: int, total: int) -> None:
            report(WorkReport(Work.DATA, place.address, copied, total))

        def check() -> None:
            if stop.is_set():
                raise WorkCancelled("the restoration was cancelled")

        request = RestoreRequest(files, place, _is_of_jobs, check, progress)
        result = restore_output(request)
        begun = RestoreNote(attempt, len(result.written), measure_files(result.written), result.kept)
        self.notes.write(
            experiment.id, replace(filled, place=place.address, named=result.files, loose=(), restored=begun)
        )
        write_line(log, _describe(experiment, _describe_begin(begun, place.address)))

    def _inherit(
        self, experiment: Experiment, parent: Experiment, host: HostName, report: Report, stop: threading.Event
    ) -> None:
        lineage = experiment.plan.lineage
        chosen = _make_choice(() if lineage is None else lineage.inherit)
        name = experiment_name(parent.number, parent.sub)

        def check() -> None:
            if stop.is_set():
                raise WorkCancelled(f"the copy of the files of {name} was cancelled")

        def progress(copied: int, total: int) -> None:
            report(WorkReport(Work.DATA, f"output://{name}", copied, total))

        def wants(path: str) -> bool:
            return _is_of_jobs(path) and chosen(path)

        source = self._open_files(parent, None)
        request = FolderCopy(source, self._open_files(experiment, host), wants, check, progress)
        try:
            counted = copy_folder(request)
        except NotFound as error:
            text = f"{name}, whose files this trial continues, has no output any more: {error.message}"
            raise EngineError(text, "outputs of a search that goes on must stay", permanent=True) from None
        note = self.notes.read(experiment.id)
        self.notes.write(experiment.id, replace(note, inherited=tuple(dict.fromkeys((*note.inherited, host)))))
        write_line(log, _describe(experiment, f"begins with {counted.describe()} of {name}"))

    def _find_place(self, experiment: Experiment, address: str, keys: Environment = ()) -> SavePlace:
        """Return where an output goes: its present place, or a place without another server's experiment."""
        base = parse_data_url(address or _find_section(experiment).to)
        if not address:
            base = replace(base, names=(*base.names, *output_folder(experiment).parts))
        home = self._hosts.settings.home
        store = find_save_store(read_stores(home), base)
        seals = make_seals(self._hosts.settings, self._server)
        store = add_passed_keys(store, keys or seals.open(experiment))
        head = self._make_head(experiment)
        try:
            return claim_place(self._open_target(base, store), str(base), head)
        except DestinationInUse as error:
            if address:
                raise
            log.info("%s", error.message)
        *above, name = base.names
        other = replace(base, names=(*above, f"{name}-{self._server[:_SHORT_SERVER]}"))
        return claim_place(self._open_target(other, store), str(other), head)

    def _make_head(self, experiment: Experiment) -> SaveManifest:
        name = f"{experiment.owner.user}.{experiment_name(experiment.number, experiment.sub)}"
        moment = now().isoformat(timespec="seconds")
        return SaveManifest(f"{self._server} {experiment.id}", name, moment, find_attempt(experiment), ())

    def _open_files(self, experiment: Experiment, host: HostName | None) -> StorageFiles:
        canonical_id = CanonicalId(experiment.number, experiment.sub)
        return open_output(self._hosts, [experiment], canonical_id, host)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors that no further try can fix as permanent errors."""
        try:
            yield
        except (NotFound, Refused) as error:
            raise EngineError(error.message, error.hint, permanent=True) from None
        except OSError as error:
            text = f"{self._hosts.settings.home / _FOLDER} cannot be written: {error.strerror or error}"
            raise EngineError(text, advise_on_write(error)) from error


class _SaveNoteEditor:
    """The note of a running copy."""

    def __init__(self, notes: SaveNotes, experiment: int) -> None:
        self._notes = notes
        self._experiment = experiment
        self.now = notes.read(experiment)

    def note(self, files: KnownFiles) -> None:
        """Note what is in the store."""
        self.now = replace(
            self.now, named=files.named, loose=files.loose, missing=files.missing, is_swept=files.is_swept
        )
        self._notes.write(self._experiment, self.now)

    def finish(self, result: SaveResult, last: int) -> None:
        """Note a complete copy."""
        files = result.known_files
        note = replace(self.now, named=files.named, loose=(), missing=(), is_swept=True, left_out=result.left_out)
        note = replace(note, trouble="")
        self._notes.write(self._experiment, replace(note, saved_at=now(), last=max(note.last, last)))

    def skip(self, last: int) -> None:
        """Note that an attempt ended before its output was filled. The output lacks files that are in the store: a copy
        of it would take them out of the manifest.

        Raises:
            EngineError: what an earlier attempt wrote last is not in the store either (permanent).
        """
        if last and self.now.last < self.now.filling - 1:
            number = self.now.filling
            text = (
                f"attempt {number} ended before its output was filled, and the end of attempt {number - 1} is not saved"
            )
            raise EngineError(text, "the last complete copy stays in the store", permanent=True)
        if last:
            self._notes.write(self._experiment, replace(self.now, last=max(self.now.last, last)))

    def fail(self, error: RisemlError) -> None:
        """Note why a copy ended."""
        try:
            trouble = f"{error.message} ({error.hint})" if error.hint else error.message
            self._notes.write(self._experiment, replace(self.now, trouble=trouble))
        except OSError as full:
            log.warning("what is saved of %s is not noted: %s", self._experiment, full.strerror)


def _find_section(experiment: Experiment) -> SaveSection:
    """Return the `save` section of the plan.

    Raises:
        Refused: there is none.
    """
    if experiment.plan.policy.save is None:
        name = experiment_name(experiment.number, experiment.sub)
        raise Refused(f"{name} saves nothing: its riseml.yml has no `save`", "`riseml cp` copies outputs")
    return experiment.plan.policy.save


def _make_choice(only: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a predicate for the paths to save. `*.json` does not match the files that riseml writes into `.riseml`."""
    own = [parse_glob(text) for text in only if text.startswith(CAPSULE_FOLDER)]
    other_patterns = [parse_glob(text) for text in only if not text.startswith(CAPSULE_FOLDER)]

    def wants(path: str) -> bool:
        patterns = own if path.split("/")[0] == CAPSULE_FOLDER else [*own, *other_patterns]
        return not only or any(pattern.matches(path) for pattern in patterns)

    return wants


def _is_of_jobs(path: str) -> bool:
    """Return False for the files that the server itself writes into each output."""
    return path != RECORD and path.split("/")[0] != CAPSULE_FOLDER


def _has_any(files: StorageFiles, note: SaveNote) -> bool:
    """Return True when an output still has a saved file, or when no file was ever saved."""
    saved = {file.path for file in note.named if _is_of_jobs(file.path)}
    if not saved:
        return True
    after: str | None = None
    while True:
        page = files.list_files(ListRequest("", after, deep=True))
        if any(entry.path in saved for entry in page.entries):
            return True
        after = page.next
        if after is None:
            return False


def _describe(experiment: Experiment, text: str) -> LogLine:
    name = experiment_name(experiment.number, experiment.sub)
    return LogLine(f"{name} {text}", experiment=name)


def _describe_begin(begun: RestoreNote, address: str) -> str:
    if not begun.files and not begun.kept:
        return f"attempt {begun.attempt} begins with an empty output: {address} has nothing of it yet"
    return f"attempt {begun.attempt} begins with {begun.files} files ({begun.size:,} bytes) of {address}"
