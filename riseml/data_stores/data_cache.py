"""The cache of data: a folder of the server with every set that was fetched, and which experiment uses which.

    sets/<key>/files/...      what jobs read; written once, never changed, under its name only when it is complete
    sets/<key>/files.json     where it came from, and the size, time and SHA-256 of each file
    parts/<key>/...           a set that is being fetched; the next try goes on with it
    uses/<id>.json            what experiment <id> reads: the name of each folder, and where it is
    views/<id>/<folder>       links to the same, for jobs that are processes

One server uses the folder. Several threads of it may.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from riseml.base.errors import DiskFull, EngineError
from riseml.base.folders import make_private
from riseml.base.records import dataclass
from riseml.job_programs.folder_removal import RemovalTally, remove_entry

log = logging.getLogger(__name__)

_CLAIM_PAUSE = 1.0  # seconds between two checks whether a waiting thread was told to stop


@dataclass(frozen=True, slots=True)
class HeldSet:
    """One set in the cache."""

    key: str
    url: str  # where it came from; empty: it is not complete
    size: int  # bytes
    used: float  # when an experiment last began to use it, seconds since the epoch
    in_use: bool


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file of a complete set."""

    path: str  # below `files`
    size: int  # bytes
    changed: int  # modification time, nanoseconds
    sha256: str


class DataCache:
    """The fetched datasets, and who uses them. The folder is made with the first dataset."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._claimed: set[str] = set()  # keys that one thread works on
        self._fetches: Counter[str] = Counter()  # keys of fetches under way, which nothing may remove
        self._expected: dict[str, int] = {}  # expected bytes of the sets that are being fetched
        self._uses = {int(path.stem): _read_json(path) for path in self._list("uses") if path.suffix == ".json"}

    @contextlib.contextmanager
    def claim_set(self, key: str, stop: threading.Event) -> Iterator[None]:
        """Hold a set exclusively: a second thread that wants the same set waits for the first.

        Raises:
            EngineError: `stop` was set while it waited.
        """
        with self._free:
            while key in self._claimed:
                if stop.is_set():
                    raise EngineError("the fetch was cancelled", permanent=True)
                self._free.wait(_CLAIM_PAUSE)
            self._claimed.add(key)
        try:
            yield
        finally:
            with self._free:
                self._claimed.discard(key)
                self._expected.pop(key, None)
                self._free.notify_all()

    @contextlib.contextmanager
    def hold_set(self, key: str) -> Iterator[None]:
        """Protect a set from removal until its experiment is recorded as its user."""
        with self._lock:
            self._fetches[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._fetches -= Counter([key])

    def find_set(self, key: str) -> Path | None:
        """Return the files of a complete set; None without one. A set whose files were changed is removed.

        Raises:
            EngineError: it was changed, and an experiment uses it.
        """
        folder = self.folder / "sets" / key
        rows = read_rows(folder)
        if rows is None and not folder.exists():
            return None
        # without rows: a server that died while it removed the set has left the rest
        if rows is None or not all(_is_same(folder / "files" / row.path, row) for row in rows):
            with self._lock:
                has_readers = self._has_readers(key)
            if has_readers:
                text = f"files of {folder} were changed, and an open experiment reads them"
                raise EngineError(text, "wait for its end, or kill it", permanent=True)
            remove_tree(folder)
            return None
        os.utime(folder)
        return folder / "files"

    def find_files(self, key: str) -> Path:
        """Return where the files of a set are, or would be."""
        return self.folder / "sets" / key / "files"

    def find_key(self, place: str) -> str:
        """Return the key of the set whose files are at a place; empty: the place is not in the cache."""
        key = Path(place).parent.name
        return key if Path(place) == self.find_files(key) else ""

    def begin_set(self, key: str, size: int, limit: int) -> Path:
        """Make room for a set of `size` bytes, and return the folder for its parts.

        Raises:
            EngineError: it is larger than the cache (permanent), or open experiments use too much of it.
        """
        if size > limit:
            text = f"the data has {size:,} bytes, and the cache of data holds {limit:,}"
            raise EngineError(text, "raise `data_cache.size` in pool.yml", permanent=True)
        part = self.folder / "parts" / key
        with self._lock:
            self._expected[key] = size
        self._make_room(key, limit)
        make_private(self.folder)
        missing = size - _measure(part)
        free = shutil.disk_usage(self.folder).free
        if missing > free:
            text = f"the data needs {missing:,} bytes more, and the disk of {self.folder} has {free:,} free"
            raise DiskFull(text, "free some space there", permanent=True)
        (part / "files").mkdir(parents=True, exist_ok=True, mode=0o700)
        return part

    def finish_set(self, key: str, url: str, rows: list[FileRow]) -> Path:
        """Give a complete set its name, and return its files."""
        part = self.folder / "parts" / key
        folder = self.folder / "sets" / key
        remove_tree(part / "new")
        for place, _, _ in os.walk(part / "files", topdown=False):
            os.chmod(place, 0o555)
        table = [[row.path, row.size, row.changed, row.sha256] for row in rows]
        _write_json(part / "files.json", {"url": url, "files": table})
        folder.parent.mkdir(exist_ok=True, mode=0o700)
        os.rename(part, folder)
        return folder / "files"

    def drop_part(self, key: str) -> None:
        """Remove the files of an incomplete set."""
        remove_tree(self.folder / "parts" / key)

    def note_use(self, experiment: int, places: Mapping[str, str]) -> None:
        """Note what an experiment reads: for each folder the place of its files."""
        view = self.folder / "views" / str(experiment)
        remove_tree(view)
        make_private(self.folder)
        view.mkdir(parents=True, mode=0o700)
        for folder, place in places.items():
            (view / folder).symlink_to(place)
        (self.folder / "uses").mkdir(exist_ok=True, mode=0o700)
        _write_json(self.folder / "uses" / f"{experiment}.json", dict(places))
        with self._lock:
            self._uses[experiment] = dict(places)

    def find_use(self, experiment: int) -> Mapping[str, str] | None:
        """Return what an experiment reads; None until all of it is there."""
        return self._uses.get(experiment)

    def find_view(self, experiment: int) -> Path:
        """Return the folder of links for jobs that are processes."""
        return self.folder / "views" / str(experiment)

    def drop_uses_except(self, open_ids: frozenset[int]) -> None:
        """Forget what closed experiments read: all but these."""
        self.drop_uses([experiment for experiment in list(self._uses) if experiment not in open_ids])

    def drop_uses(self, closed: Iterable[int]) -> None:
        """Forget what these experiments read."""
        for experiment in [identity for identity in closed if identity in self._uses]:
            with self._lock:
                self._uses.pop(experiment, None)
            try:
                (self.folder / "uses" / f"{experiment}.json").unlink(missing_ok=True)
                remove_tree(self.folder / "views" / str(experiment))
            except OSError as error:  # the next server tries again; the loop of this one goes on
                log.warning("what experiment %s read stays noted in %s: %s", experiment, self.folder, error.strerror)

    def list_sets(self) -> list[HeldSet]:
        """Return every set and every part, the least recently used first."""
        sets = []
        for path in (*self._list("sets"), *self._list("parts")):
            with contextlib.suppress(FileNotFoundError):
                url = read_url(path) if path.parent.name == "sets" else ""
                with self._lock:
                    is_used = self._is_used(path.name)
                sets.append(HeldSet(path.name, url, _measure(path), path.stat().st_mtime, is_used))
        return sorted(sets, key=lambda held_set: held_set.used)

    def remove_set(self, key: str) -> None:
        """Remove a set, or its parts.

        Raises:
            EngineError: it is in use.
        """
        if not self._remove_unused(key):
            raise EngineError("an open experiment uses it")

    def _make_room(self, key: str, limit: int) -> None:
        """Remove unused sets until the one that is fetched fits."""
        candidates = [held_set for held_set in self.list_sets() if held_set.key != key]
        with self._lock:
            expected = dict(self._expected)
        used = sum(expected.values()) + sum(held_set.size for held_set in candidates if held_set.key not in expected)
        for held_set in candidates:
            if used <= limit:
                return
            if not held_set.in_use and self._remove_unused(held_set.key):
                used -= held_set.size
        if used > limit:
            text = f"the cache of data holds {limit:,} bytes, and what open experiments use leaves too little of it"
            raise EngineError(text, "wait for their end, or raise `data_cache.size` in pool.yml")

    def _remove_unused(self, key: str) -> bool:
        """Remove a set, or its parts; return False when it is in use. A fetch that wants it meanwhile waits."""
        with self._free:
            if self._is_used(key):
                return False
            self._claimed.add(key)
        try:
            remove_tree(self.folder / "sets" / key)
            self.drop_part(key)
            return True
        finally:
            with self._free:
                self._claimed.discard(key)
                self._free.notify_all()

    def _is_used(self, key: str) -> bool:
        """Return True while a thread works on a set, or an experiment reads it; the caller has the lock."""
        return key in self._claimed or self._fetches[key] > 0 or self._has_readers(key)

    def _has_readers(self, key: str) -> bool:
        files = str(self.find_files(key))
        return any(files in places.values() for places in self._uses.values())

    def _list(self, name: str) -> list[Path]:
        try:
            return sorted((self.folder / name).iterdir())
        except OSError:  # it is not there, or cannot be read now
            return []


def read_rows(folder: Path) -> list[FileRow] | None:
    """Return the files of a complete set; None when there is no complete set."""
    try:
        return [FileRow(*row) for row in _read_json(folder / "files.json")["files"]]
    except (FileNotFoundError, KeyError, TypeError):
        return None


def read_url(folder: Path) -> str:
    """Return the address that a complete set came from; empty when there is no complete set."""
    try:
        return str(_read_json(folder / "files.json").get("url", ""))
    except FileNotFoundError:
        return ""


def remove_tree(folder: Path) -> None:
    """Remove a folder that contains read-only folders; do nothing when it does not exist."""
    if folder.is_dir() and not folder.is_symlink():
        remove_entry(None, os.fsencode(folder), RemovalTally(), force=True)


def _is_same(path: Path, row: FileRow) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (row.size, row.changed)


def _measure(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # cut off by a crash of the machine
        return {}
    return document if isinstance(document, dict) else {}


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    new = path.with_name(f"{path.name}.{time.time_ns()}")
    try:
        with open(new, "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, path)
    except OSError:  # the disk is full
        new.unlink(missing_ok=True)
        raise
