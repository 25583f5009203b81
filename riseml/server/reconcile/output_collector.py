"""Keep what a job wrote outside of OUTPUT_DIR, or say that it is lost.

The follower of a job's log calls `OutputCollector.collect` when the job has ended and its log is complete, and the job
is removed only after that. A call can be repeated: a file that is in OUTPUT_DIR already is not copied again, and the
record in the store says that a job is done.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress

from riseml.base.amounts import format_bytes
from riseml.base.errors import EngineError, NotFound, RisemlError, Unreachable
from riseml.base.faultpoints import Point, reach
from riseml.base.names import CanonicalId, HostName
from riseml.base.records import dataclass
from riseml.base.states import JobDuty
from riseml.executors.base import Executor, NotThere
from riseml.executors.capabilities import WrittenReader
from riseml.executors.written_files import Unread, WrittenFile, WrittenRequest, read_path
from riseml.files.archives.entries import ArchiveEntry
from riseml.files.local_files import LocalFiles
from riseml.files.storage.outputs import RECORD
from riseml.files.storage_files import ListRequest, StorageFiles
from riseml.job_programs.folder_contents import PART, FileUpload
from riseml.job_programs.folder_paths import encode_name, show_name
from riseml.model import Experiment, Frame, Job, JobKey
from riseml.planning.launch import CONTAINER_FOLDERS
from riseml.server.clock import stamp
from riseml.server.data.file_places import open_output
from riseml.server.hosts.host_set import HostSet
from riseml.server.written_lines import MOST_NAMES, STREAM, is_about_files, list_log_lines
from riseml.spec.scalars.output_patterns import parse_output_pattern
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.written_files import WrittenRecord, WrittenStore
from riseml.wire.capsules import CAPSULE_FOLDER

MOST_KEPT = 10_000
"""Files of one job that are moved into OUTPUT_DIR."""

MOST_BYTES = 100 << 30
"""Bytes of these files together. A sparse file counts with its whole size."""

_MOST_TOPS = 1_000  # names at the top that are counted
_PATIENCE = 60.0  # seconds for which files are tried again that an engine or a disk refuses
_LONG_PATIENCE = 600.0  # the same where the engine begins no answer
_LEAST_TRIES = 5
_SAID_AT_END = 5  # last lines of a job, among which riseml's own are
_PLAIN = re.compile(r"(?!(?i:null|true|false|yes|no|on|off|y|n)$)[A-Za-z_][A-Za-z0-9_./-]*")  # is a text in YAML
_GLOB = re.compile(r"([*?\[])")
_NOT_WRITTEN = re.compile(r"[${}]")  # characters that a pattern of `outputs` takes for something else
_EVERYTHING = "."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CollectorParts:
    """What the collector works with."""

    hosts: HostSet
    experiments: ExperimentStore
    snapshots: SnapshotStore
    logs: LogStore
    written: WrittenStore


class OutputCollector:
    """Collects the files of all jobs; several threads use it at the same time, one for each job."""

    def __init__(self, desk: CollectorParts) -> None:
        self._desk = desk
        self._guard = threading.Lock()
        # when the files of a job could not be read or kept for the first time, and how often
        self._failures: dict[JobKey, tuple[float, int]] = {}

    def collect(self, executor: Executor, key: JobKey) -> None:
        """Keep what riseml.yml asks for, store a record of the rest, and add its line to the log of the job.

        Raises:
            RisemlError: a host, the output or the store does not answer; call it again.
            OSError: the log cannot be written; call it again.
        """
        reader = executor.capabilities.written
        if reader is None:
            return
        record = self._desk.written.load_record(key)
        if record is None:
            try:
                experiment = self._desk.experiments.get_experiment(key.experiment).experiment
            except NotFound:
                return
            job = next((job for job in experiment.jobs if job.name == key.job), None)
            if experiment.reads or job is None or job.part is JobDuty.PREPARES:
                return
            home = CONTAINER_FOLDERS.home if executor.contained else self._desk.hosts.roots.home
            output_files = _OutputFiles(self._desk.hosts, executor.name, experiment, job)
            record = self._collect_files(reader, key, home, output_files)
            if record.is_empty:
                return
            reach(Point.FILES_KEPT)
            self._desk.written.save_record(key, record)
            reach(Point.FILES_NOTED)
        self._say(key, record)

    def _collect_files(
        self, reader: WrittenReader, key: JobKey, home: str, output_files: _OutputFiles
    ) -> WrittenRecord:
        experiment = output_files.experiment
        patterns = tuple(map(parse_output_pattern, experiment.plan.list_outputs(key.job)))
        request = WrittenRequest(key, patterns, home, lambda: self._list_project(experiment))
        tally = WrittenTally(tuple(pattern.text for pattern in patterns))
        try:
            for file in reader.read_written(request):
                _take(file, output_files, tally)
        except NotThere:
            return WrittenRecord()
        except Unreachable as error:
            if not self._is_given_up(key, error):
                raise
            tally.note_trouble(error.message)
        with self._guard:
            self._failures.pop(key, None)
        return tally.make_record()

    def _is_given_up(self, key: JobKey, error: Unreachable) -> bool:
        """Return True when the files of a job are lost because of an error. A host that does not answer still has
        them, so only failures that go on while it answers count: the log of the job is read before each try.
        """
        if isinstance(error, EngineError) and error.permanent:
            return True
        with self._guard:
            since, tries = self._failures.get(key, (time.monotonic(), 0))
            self._failures[key] = since, tries + 1
        patience = _PATIENCE if isinstance(error, EngineError) else _LONG_PATIENCE
        return tries >= _LEAST_TRIES and time.monotonic() > since + patience

    def _list_project(self, experiment: Experiment) -> Mapping[str, ArchiveEntry]:
        if not experiment.snapshot:
            return {}
        try:
            entries = self._desk.snapshots.list_files(experiment.snapshot)
        except NotFound:
            return {}
        return {encode_name(entry.path.encode("utf-8", "surrogateescape")): entry for entry in entries}

    def _say(self, key: JobKey, record: WrittenRecord) -> None:
        """Add the lines about a record to the log, unless a server that was killed has done so."""
        texts = {line.text for line in self._desk.logs.read_last_lines(key, _SAID_AT_END) if is_about_files(line)}
        frames = [Frame(stamp(), STREAM, line + b"\n") for line in list_log_lines(record) if line not in texts]
        if frames:
            self._desk.logs.append_frames(key, frames)


def _take(file: WrittenFile | Unread, output_files: _OutputFiles, tally: WrittenTally) -> None:
    """Keep one file that is wanted, and count it."""
    if isinstance(file, Unread):
        tally.note_rest(file.reason)
    elif file.target is not None:
        output_files.write_link(file)
    elif file.content is None:
        tally.note_lost(file)
    else:
        trouble = output_files.write_file(file, file.content)
        if trouble:
            tally.note_left_out(file, trouble)
        else:
            tally.note_kept(file)


class _OutputFiles:
    """Moves files of one job into the output of its experiment."""

    def __init__(self, hosts: HostSet, host: HostName, experiment: Experiment, job: Job) -> None:
        self.experiment = experiment
        self._hosts = hosts
        self._host = host
        self._job = job
        self._output: StorageFiles | None = None
        self._prefix = f"{job.name}/" if _shares_output(experiment, job) else ""
        self._files = 0
        self._bytes = 0

    def write_file(self, file: WrittenFile, content: Iterator[bytes]) -> str:
        """Copy a file into the output; return why not, or an empty text.

        Raises:
            Unreachable: the host with the output does not answer, or its disk fails.
        """
        path = f"{self._prefix}{file.path}"
        if path == RECORD or path.split("/")[0] == CAPSULE_FOLDER or path.split("/")[-1].startswith(PART):
            return f"{show_name(path)} is a name of riseml's own"
        if self._files >= MOST_KEPT:
            return f"at most {MOST_KEPT:,} files of a job are kept"
        if self._bytes + file.size > MOST_BYTES:
            return f"at most {format_bytes(MOST_BYTES)} of a job are kept"
        self._files += 1
        self._bytes += file.size
        try:
            output = self._open_output()
            return self._find_reason(output, path, file) or _write_file(output, path, file, content)
        except Unreachable:
            raise
        except RisemlError as error:
            return error.message

    def write_link(self, file: WrittenFile) -> None:
        """Make a link in the output if it leads to a place below the output; leave out any other."""
        if file.target is None or self._files >= MOST_KEPT:
            return
        self._files += 1
        try:
            self._open_output().make_link(f"{self._prefix}{file.path}", file.target)
        except Unreachable:
            raise
        except RisemlError as error:
            log.debug("a link of #%s.%s is not kept: %s", self.experiment.id, self._job.name, error.message)

    def _open_output(self) -> StorageFiles:
        if self._output is None:
            identity = CanonicalId(self.experiment.number, self.experiment.sub)
            self._output = open_output(self._hosts, (self.experiment,), identity, self._host)
        return self._output

    def _find_reason(self, output: StorageFiles, path: str, file: WrittenFile) -> str:
        """Return why a file of the output stays as it is: another attempt, or the job itself, wrote a newer one."""
        try:
            entry = output.list_files(ListRequest(path, limit=0)).at
        except NotFound:
            return ""
        return f"OUTPUT_DIR has a newer {show_name(path)}" if entry.kind == "file" and entry.mtime > file.mtime else ""


def _shares_output(experiment: Experiment, job: Job) -> bool:
    """Return True for a job beside others that train: each has a folder of its own for what it wrote elsewhere."""
    return any(other.part is not JobDuty.WATCHES and other.name != job.name for other in experiment.gang)


def _write_file(output: StorageFiles, path: str, file: WrittenFile, content: Iterator[bytes]) -> str:
    upload = hashlib.sha256(f"written {path}".encode()).hexdigest()[:16]
    incoming = FileUpload(path, upload, file.size, 0, file.mtime, file.executable)
    if isinstance(output, LocalFiles) and file.source is not None and output.link_file(incoming, *file.source):
        return ""
    above, mark, _ = path.rpartition("/")
    part = f"{above}{mark}{PART}{upload}"
    with suppress(NotFound):  # a server that was killed may have left it
        output.remove_files(part, 1)
    writer = output.write_file(incoming)
    try:
        digest = hashlib.sha256()
        remaining = file.size
        for piece in content:
            sent = piece[:remaining]
            digest.update(sent)
            writer.write(sent)
            remaining -= len(sent)
        if remaining:
            writer.discard()
            return f"{show_name(path)} changed while it was copied"
        writer.write(digest.digest())
        writer.finish()
    except BaseException:
        writer.discard()
        raise
    finally:
        writer.close()
    return ""


class WrittenTally:
    """Counts the files of one job."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._patterns = patterns
        self._kept = _FileCount()
        self._lost = _FileCount()
        self._left_out = _FileCount()
        self._trouble = ""
        self._more = False

    def note_kept(self, file: WrittenFile) -> None:
        """Count a file that is in the output now."""
        self._kept.add(file)

    def note_lost(self, file: WrittenFile) -> None:
        """Count a file that goes with the job."""
        self._lost.add(file)

    def note_left_out(self, file: WrittenFile, trouble: str) -> None:
        """Count a file that goes with the job although it is wanted."""
        self._left_out.add(file)
        self.note_trouble(trouble)

    def note_trouble(self, trouble: str) -> None:
        """Note why a file that was to be kept is lost; the first reason stays."""
        self._trouble = self._trouble or trouble

    def note_rest(self, reason: str) -> None:
        """Note that the job has written more than was read."""
        self._more = True
        if self._patterns:
            self.note_trouble(reason)

    def make_record(self) -> WrittenRecord:
        """Return what was counted."""
        added = self._lost.list_patterns()
        patterns = dict.fromkeys([*self._patterns, *added])
        lost_files = self._lost.files + self._left_out.files
        return WrittenRecord(
            self._kept.files,
            self._kept.bytes,
            self._kept.list_names(),
            lost_files,
            self._lost.bytes + self._left_out.bytes,
            (*self._left_out.list_names(), *self._lost.list_names())[: MOST_NAMES + 1],
            f"`outputs: [{', '.join(map(_quote, patterns))}]`" if added else "",
            self._trouble,
            self._more and lost_files > 0,
        )


class _FileCount:
    """Files, their bytes, and the names at the top that they are below."""

    def __init__(self) -> None:
        self.files = 0
        self.bytes = 0
        self._tops: Counter[str] = Counter()
        self._home_tops: Counter[str] = Counter()  # names at the top of the home folder

    def add(self, file: WrittenFile) -> None:
        self.files += 1
        self.bytes += file.size
        top, below, _ = file.path.partition("/")
        tops = self._home_tops if file.is_in_home else self._tops
        if top + below in tops or len(tops) < _MOST_TOPS:
            tops[top + below] += 1

    def list_names(self) -> tuple[str, ...]:
        """Return the first names: `model.pt`, `runs/...`."""
        tops = [*self._tops, *(f"~/{top}" for top in self._home_tops)]
        names = [f"{top}..." if top.endswith("/") else top for top in tops]
        return tuple(map(show_name, names[: MOST_NAMES + 1]))

    def list_patterns(self) -> list[str]:
        """Return patterns that mean all of these files of the working folder; few enough for a line, or the one for
        everything.

        In the home folder no pattern means everything, nor a name with characters that patterns read otherwise: the
        line has the first names.
        """
        names = [top.removesuffix("/") for top in self._home_tops]
        in_home = [f"~/{name}" for name in names if _write_pattern(name) == name]
        return [*self._list_folder_patterns(), *in_home[:MOST_NAMES]]

    def _list_folder_patterns(self) -> list[str]:
        if len(self._tops) <= MOST_NAMES:
            return [_write_pattern(top.removesuffix("/")) for top in self._tops]
        folders = [_write_pattern(top[:-1]) for top in self._tops if top.endswith("/")]
        ends = list(dict.fromkeys(_find_end(top) for top in self._tops if not top.endswith("/")))
        is_known = len(self._tops) < _MOST_TOPS and max(len(folders), len(ends)) <= MOST_NAMES
        return [*folders, *ends] if is_known else [_EVERYTHING]


def _find_end(name: str) -> str:
    """Return the pattern of files with the same end: `*.pt`; of a name without one, the name."""
    stem, mark, end = name.rpartition(".")
    return f"*.{_write_pattern(end)}" if stem and mark else _write_pattern(name)


def _write_pattern(name: str) -> str:
    """Return the pattern that means a name; `?` stands for a character that users cannot write in one."""
    text = _NOT_WRITTEN.sub("?", _GLOB.sub(r"[\1]", read_path(name)))
    return "".join(character if character.isprintable() else "?" for character in text)


def _quote(pattern: str) -> str:
    return pattern if _PLAIN.fullmatch(pattern) else json.dumps(pattern, ensure_ascii=False)
