"""Copies of fetched data on hosts that do not see the server's cache: one volume for each set, read by all jobs there.

A copy is made before an experiment takes its place on the host. It is compared with what was fetched, used by every
experiment that names the same data, and removed when the host needs the room for another set.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from riseml.base.errors import EngineError, RisemlError, Unreachable
from riseml.base.faultpoints import Point, reach
from riseml.base.names import FETCHED_VOLUME, HostName
from riseml.base.records import dataclass
from riseml.data_stores.copy_set import check_copy, pack_batch, split_set
from riseml.data_stores.data_cache import FileRow, read_rows, read_url
from riseml.data_stores.host_copies import HostCopies, HostCopy
from riseml.executors.base import Report, Work, WorkCancelled, WorkInterrupted, WorkReport
from riseml.executors.capabilities import DataVolume, HostData
from riseml.server.hosts.host_set import HostSet

_FOLDER = "data-copies"
_SHORT_SERVER = 8  # characters in the name of a volume
_SHORT_KEY = 16  # characters in the name of a volume
_PAUSE = 1.0  # seconds between two checks whether a waiting thread was told to stop


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """One set that a host is to have."""

    host: HostName
    files: Path  # files of the set in the cache of the server
    limit: int  # bytes of all sets on the host
    report: Report
    stop: threading.Event  # set: the copy ends as soon as it can

    @property
    def key(self) -> str:
        return self.files.parent.name

    def check(self) -> None:
        """Raise an error when the copy must end."""
        if self.stop.is_set():
            raise WorkCancelled("the copy was cancelled")


class DataCopies:
    """The copies of a server. Several threads use it at the same time.

    Args:
        server: id of this server.
        hosts: the hosts of this server.
    """

    def __init__(self, server: str, hosts: HostSet) -> None:
        self._server = server
        self._hosts = hosts
        self._notes = HostCopies(hosts.settings.home / _FOLDER)
        self._free = threading.Condition()
        self._claimed: set[tuple[HostName, str]] = set()  # hosts and keys that one thread works on
        self._rooms: defaultdict[HostName, threading.Lock] = defaultdict(threading.Lock)
        # id of an open experiment -> the hosts and keys that it reads, or is to read
        self._readers: dict[int, frozenset[tuple[HostName, str]]] = {}

    def note_readers(self, readers: Mapping[int, frozenset[tuple[HostName, str]]]) -> None:
        """Note which sets open experiments read on which hosts: these stay there."""
        self._readers = dict(readers)

    def forget_readers(self, closed: Collection[int]) -> None:
        """Forget what these experiments read."""
        self._readers = {experiment: read for experiment, read in self._readers.items() if experiment not in closed}

    def find_hosts(self, keys: frozenset[str]) -> frozenset[HostName]:
        """Return the hosts that have whole copies of all these sets."""
        return frozenset(
            host
            for host in self._notes.list_hosts()
            if keys <= {copy.key for copy in self._notes.list_copies(host) if copy.whole}
        )

    def name_volume(self, key: str) -> str:
        """Return the name of the volume that has a set."""
        return f"{FETCHED_VOLUME}{self._server[:_SHORT_SERVER]}-{key[:_SHORT_KEY]}"

    def list_copies(self, host: HostName) -> dict[str, HostCopy]:
        """Return what is known of the volumes of a host, by their names."""
        return {copy.volume: copy for copy in self._notes.list_copies(host)}

    def is_used(self, host: HostName, copy: HostCopy) -> bool:
        """Return True when an open experiment reads a copy, or a thread works on it."""
        with self._free:
            return (host, copy.key) in self._list_used()

    def copy_set(self, request: CopyRequest) -> None:
        """Copy a set to a host; return when the copy is complete and was compared with the set.

        Raises:
            WorkInterrupted: the host cannot have all of it now, and has more of it than before.
            RisemlError: the host cannot have it now (or never: permanent). What has arrived counts for the next try.
        """
        with self._claim(request):
            data = self._find_data(request.host)
            self.find_lost(request.host)
            former_copy = self._notes.find_copy(request.host, request.key)
            if former_copy is not None and former_copy.whole:
                self._notes.note(request.host, replace(former_copy, used=time.time()))
                return
            rows = read_rows(request.files.parent)
            if rows is None:
                raise EngineError("its data is gone from the cache", "run `riseml train` again", permanent=True)
            copy = former_copy or self._begin_copy(request, data, rows)
            try:
                self._fill(request, data, copy, rows)
            except RisemlError as error:
                if isinstance(error, EngineError) and error.permanent and not request.stop.is_set():
                    self._remove(request.host, data, copy)
                now = self._notes.find_copy(request.host, request.key)
                if now is not None and now.arrived > copy.arrived and not request.stop.is_set():
                    raise WorkInterrupted(error.message, error.hint) from error
                raise

    def find_lost(self, host: HostName) -> None:
        """Compare the notes about a host with its volumes: forget copies that are gone, remove this server's unknown
        volumes.

        Raises:
            RisemlError: the host does not answer.
        """
        data = self._find_data(host)
        # before the host is asked: the volume of a copy that begins meanwhile is not in its answer
        copies = self.list_copies(host)
        claimed = self._list_claimed(host)
        volumes = data.list_volumes()
        for name, copy in copies.items():
            if name not in volumes and not (copy.arrived == 0 and name in claimed):
                self._notes.drop(host, copy.key)
        for name in volumes - copies.keys() - self._list_claimed(host) - self.list_copies(host).keys():
            with suppress(EngineError):  # a container uses it
                data.remove_volume(name)

    def remove_copy(self, host: HostName, volume: str) -> None:
        """Remove a volume from a host.

        Raises:
            RisemlError: a job uses it, or the host does not answer.
        """
        copy = self.list_copies(host).get(volume)
        if copy is not None and self.is_used(host, copy):
            raise EngineError("an open experiment uses it")
        self._find_data(host).remove_volume(volume)
        if copy is not None:
            self._notes.drop(host, copy.key)

    def _begin_copy(self, request: CopyRequest, data: HostData, rows: list[FileRow]) -> HostCopy:
        size = sum(row.size for row in rows)
        url = read_url(request.files.parent)
        copy = HostCopy(request.key, self.name_volume(request.key), url, size, 0, whole=False, used=time.time())
        with self._rooms[request.host]:
            self._make_room(request, data, size)
            self._notes.note(request.host, copy)
        return copy

    def _make_room(self, request: CopyRequest, data: HostData, size: int) -> None:
        """Remove copies that no open experiment reads, the least recently used first."""
        if size > request.limit:
            text = f"the data has {size:,} bytes, and the copies on host {request.host} may have {request.limit:,}"
            raise EngineError(text, "raise `data_cache.size` in pool.yml", permanent=True)
        copies = self._notes.list_copies(request.host)
        total = size + sum(copy.size for copy in copies)
        for copy in copies:
            if total <= request.limit:
                return
            with self._claim_unused(request.host, copy) as is_unused:
                if is_unused and self._remove_unused(request.host, data, copy):
                    total -= copy.size
        if total > request.limit:
            text = (
                f"copies of data may have {request.limit:,} bytes on host {request.host}, and open experiments use them"
            )
            raise EngineError(text, "wait for their end, or raise `data_cache.size` in pool.yml")

    def _remove_unused(self, host: HostName, data: HostData, copy: HostCopy) -> bool:
        """Remove a copy that no open experiment reads; return False when a container uses it."""
        try:
            data.remove_volume(copy.volume)
        except EngineError:
            return False
        self._notes.drop(host, copy.key)
        return True

    def _fill(self, request: CopyRequest, data: HostData, copy: HostCopy, rows: list[FileRow]) -> None:
        volume = DataVolume(copy.volume, copy.key)
        sent = sum(row.size for row in rows[: copy.arrived])

        def note(size: int) -> None:
            nonlocal sent
            sent += size
            request.check()
            request.report(WorkReport(Work.DATA, f"{copy.url} to {request.host}", min(sent, copy.size), copy.size))

        note(0)
        data.make_volume(volume)
        for batch in split_set(rows, copy.arrived):
            data.write_tar(volume, pack_batch(request.files, batch, note))
            reach(Point.COPY_SENT)
            copy = replace(copy, arrived=batch.end)
            self._notes.note(request.host, copy)
        reach(Point.COPY_ARRIVED)
        try:
            with closing(data.read_tar(volume)) as tar:
                check_copy(tar, rows, lambda _: request.check())
        except EngineError:
            if not request.stop.is_set():
                self._remove(request.host, data, copy)  # the next try starts again
            raise
        reach(Point.COPY_COMPARED)
        self._notes.note(request.host, replace(copy, whole=True, used=time.time()))

    def _list_used(self) -> frozenset[tuple[HostName, str]]:
        return frozenset(self._claimed).union(*self._readers.values())

    def _remove(self, host: HostName, data: HostData, copy: HostCopy) -> None:
        with suppress(RisemlError):  # the next copy to this host tries again
            data.remove_volume(copy.volume)
            self._notes.drop(host, copy.key)

    def _find_data(self, host: HostName) -> HostData:
        executor = self._hosts.pool.executors.get(host)
        data = None if executor is None else executor.capabilities.data
        if data is None:
            raise Unreachable(f"host {host} is no longer in the pool", "`riseml pool` lists the hosts")
        return data

    def _list_claimed(self, host: HostName) -> frozenset[str]:
        """Return the volumes of a host that threads work on."""
        with self._free:
            return frozenset(self.name_volume(key) for claimed_host, key in self._claimed if claimed_host == host)

    @contextmanager
    def _claim_unused(self, host: HostName, copy: HostCopy) -> Iterator[bool]:
        """Yield True, and keep other threads away from a copy, if no open experiment and no thread uses it."""
        claim = (host, copy.key)
        with self._free:
            is_unused = claim not in self._list_used()
            if is_unused:
                self._claimed.add(claim)
        try:
            yield is_unused
        finally:
            if is_unused:
                self._release(claim)

    @contextmanager
    def _claim(self, request: CopyRequest) -> Iterator[None]:
        """Hold a set of a host exclusively: a second experiment that wants it waits, and then finds the copy."""
        claim = (request.host, request.key)
        with self._free:
            while claim in self._claimed:
                request.check()
                self._free.wait(_PAUSE)
            self._claimed.add(claim)
        try:
            yield
        finally:
            self._release(claim)

    def _release(self, claim: tuple[HostName, str]) -> None:
        with self._free:
            self._claimed.discard(claim)
            self._free.notify_all()
