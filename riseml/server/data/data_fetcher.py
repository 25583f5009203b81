"""The data that experiments name: what the server may fetch, the fetch itself, and where jobs find it.

The server fetches into a cache of its own, which the hosts on its machine mount. Hosts on other machines see it where
pool.yml names a folder that all see (`data_cache.folder`); else they get copies (`data_copies`).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path

from riseml.base.errors import EngineError, Refused, advise_on_write
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.data_stores.data_cache import DataCache, HeldSet
from riseml.data_stores.fetch import FetchRequest, fetch_set
from riseml.data_stores.remote import open_remote
from riseml.data_stores.store_file import Store, add_passed_keys, check_passed, find_job_store, find_store, read_stores
from riseml.executors.base import Report, Work, WorkReport
from riseml.model import Environment, Experiment, Plan, World
from riseml.planning.launch import DataView, LaunchTarget
from riseml.server.data.data_copies import CopyRequest, DataCopies
from riseml.server.data.output_saver import OutputSaver
from riseml.server.data.team_data import check_job_space, find_data_user, find_space, list_job_folders
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import PoolMode
from riseml.spec.pool.types import CacheSpec, Volume
from riseml.spec.scalars.data_url import DataScheme, DataUrl, parse_data_url
from riseml.store.sealed_variables import make_seals

_MIB = 1 << 20
_DEFAULT_FOLDER = "data-cache"


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One fetch of everything that an experiment names."""

    experiment: Experiment
    cache: DataCache
    limit: int  # bytes of the whole cache
    report: Report
    stop: threading.Event  # set: it ends as soon as it can
    hold: ExitStack  # until it ends, nothing of it is removed
    variables: Environment = field(repr=False)  # from the user; keys may be among them


class DataFetcher:
    """The data of all experiments of a server; `saves` has what they save, in the same stores.

    Args:
        server: id of this server; a folder that several servers see has one folder for each.
        hosts: the hosts of this server.
    """

    def __init__(self, server: str, hosts: HostSet) -> None:
        self.saves = OutputSaver(server, hosts)
        self._server = server
        self._hosts = hosts
        self._lock = threading.Lock()
        self._caches: dict[Path, DataCache] = {}
        self._running: dict[int, threading.Event] = {}  # ids of experiments whose data is being fetched
        self._copying: dict[tuple[int, HostName], threading.Event] = {}  # the same of copies to hosts
        self.copies = DataCopies(server, hosts)

    def check_team_data(self, plans: Sequence[Plan], user: str, team_project: str | None, *, is_bound: bool) -> None:
        """Check that an experiment of a team's user may read what its `data` names; nothing on another server.

        Args:
            plans: of the experiment, or of a set.
            user: who submits them.
            team_project: to which they belong.
            is_bound: a key of that project alone submits them.

        Raises:
            Refused: it is the data of a project to which the experiment does not belong.
        """
        urls = {parse_data_url(source.url) for plan in plans for source in plan.policy.data}
        if self._hosts.rules is not None:
            for url in sorted((url for url in urls if url.scheme is DataScheme.DATA), key=str):
                check_job_space(find_space(url.names, user), None if is_bound else user, team_project)

    def check_plans(self, plans: Sequence[Plan], passed: Collection[str] = ()) -> None:
        """Refuse data that the server may not fetch, or that its hosts would not see, and keys that jobs may not have.

        Args:
            plans: of experiments.
            passed: names of the variables that they get from their user.

        Raises:
            RisemlError: with what to write, and where.
        """
        named = {plan.policy.store for plan in plans if plan.policy.store}
        urls = {parse_data_url(source.url) for plan in plans for source in plan.policy.data}
        fetched = sorted((url for url in urls if url.scheme is not DataScheme.DATA), key=str)
        for url in urls.difference(fetched):
            self._check_data_folder(url)
        if fetched:
            self._check_sight()
        stores = read_stores(self._hosts.settings.home) if fetched or named else ()
        for url in fetched:
            self._check_store(find_store(stores, url))
            check_passed(find_store(stores, url), passed)
        for name in named:
            self._check_store(find_job_store(stores, name))
        self.saves.check_plans(plans, passed)

    def _check_store(self, store: Store) -> None:
        if self._hosts.rules is not None:
            self._hosts.rules.check_store(store.name, insecure=store.insecure)

    def fetch_data(self, experiment: Experiment, report: Report) -> None:
        """Fetch the data of an experiment into the cache; return when all of it is there.

        Raises:
            EngineError: the fetch failed, or `cancel_fetch` was called.
        """
        stop = self._running.setdefault(experiment.id, threading.Event())
        cache = self._find_cache()
        try:
            variables = make_seals(self._hosts.settings, self._server).open(experiment)
            with ExitStack() as hold:
                fetch = _Fetch(experiment, cache, self._spec.size * _MIB, report, stop, hold, variables)
                sources = [(source.folder, parse_data_url(source.url)) for source in experiment.plan.policy.data]
                places = {folder: str(self._fetch_source(url, fetch)) for folder, url in sources}
                cache.note_use(experiment.id, places)
        except OSError as error:
            raise EngineError(f"{cache.folder} cannot be used: {error.strerror or error}", permanent=True) from error
        finally:
            self._running.pop(experiment.id, None)

    def copy_data(self, experiment: Experiment, host: HostName, report: Report) -> None:
        """Copy the data of an experiment from the cache to a host; return when the host has all of it.

        Raises:
            RisemlError: the host cannot have it now (or never: permanent), or `cancel_fetch` was called.
        """
        stop = self._copying.setdefault((experiment.id, host), threading.Event())
        limit = self._spec.size * _MIB
        cache = self._find_cache()
        try:
            for key in sorted(self._list_sets_of(experiment)):
                self.copies.copy_set(CopyRequest(host, cache.find_files(key), limit, report, stop))
        except OSError as error:
            home = self._hosts.settings.home
            raise EngineError(f"{home} cannot be written: {error.strerror or error}", advise_on_write(error)) from error
        finally:
            self._copying.pop((experiment.id, host), None)

    def cancel_fetch(self, experiment: int, host: HostName) -> None:
        """End the fetch of an experiment's data, or its copy to a host; does nothing without one."""
        for running in (self._running.get(experiment), self._copying.get((experiment, host))):
            if running is not None:
                running.set()

    def find_fetched(self, world: World) -> frozenset[int]:
        """Return the experiments whose data is in the cache, and forget what closed experiments read."""
        cache = self._find_cache()
        cache.drop_uses_except(frozenset(experiment.id for experiment in world.experiments))
        return frozenset(
            experiment.id
            for experiment in world.experiments
            if experiment.plan.policy.data and cache.find_use(experiment.id) is not None
        )

    def find_copied(self, world: World) -> Mapping[int, frozenset[HostName]]:
        """Return the hosts that see the data of an experiment, or have a copy, for each that not every host sees."""
        hosts: dict[int, frozenset[HostName]] = {}
        readers: dict[int, frozenset[tuple[HostName, str]]] = {}
        near = frozenset(name for name in self._hosts.names if self._sees_cache(name))
        for experiment in world.experiments:
            keys = self._list_sets_of(experiment)
            if keys and len(near) < len(self._hosts.names):
                hosts[experiment.id] = near | self.copies.find_hosts(keys)
                placed = {job.host for job in experiment.gang if job.host is not None}
                readers[experiment.id] = frozenset((host, key) for host in placed or self._hosts.names for key in keys)
        self.copies.note_readers(readers)
        return hosts

    def forget_closed(self, closed: Collection[int]) -> None:
        """Forget what closed experiments read, without waiting for the next pass."""
        self._find_cache().drop_uses(closed)
        self.copies.forget_readers(closed)

    def find_target(self, experiment: Experiment, host: HostName | None) -> LaunchTarget:
        """Return how the jobs of an experiment see the storage on a host. None: the first host."""
        target = self._hosts.find_target(host)
        if experiment.plan.policy.data:
            return replace(target, view=self._make_view(experiment, host))
        return replace(target, view=self._view_spaces(experiment))

    def find_view(self, experiment: Experiment, host: HostName) -> DataView | None:
        """Return where a host has the data of an experiment; None: the whole data folder.

        Raises:
            EngineError: the data is no longer there.
        """
        if not experiment.plan.policy.data:
            return self._view_spaces(experiment)
        view = self._make_view(experiment, host)
        if not view.parts:
            raise EngineError("its data is gone from the cache", "run `riseml train` again", permanent=True)
        return view

    def list_variables(self, experiment: Experiment) -> Environment:
        """Return the variables with the keys of the store that the experiment asks for.

        Raises:
            RisemlError: there is no such store any more, or it is not for jobs.
        """
        name = experiment.plan.policy.store
        return find_job_store(read_stores(self._hosts.settings.home), name).list_variables() if name else ()

    @property
    def cache_folder(self) -> Path:
        """The folder of the cache, which may not exist yet."""
        return self._find_cache().folder

    def list_sets(self) -> list[HeldSet]:
        """Return what the cache holds."""
        return self._find_cache().list_sets()

    def remove_set(self, key: str) -> None:
        """Remove a set from the cache.

        Raises:
            EngineError: an open experiment uses it.
        """
        self._find_cache().remove_set(key)

    def _make_view(self, experiment: Experiment, host: HostName | None) -> DataView:
        cache = self._find_cache()
        folder = str(cache.find_view(experiment.id))
        parts = tuple((cache.find_use(experiment.id) or {}).items())
        if host is None or self._sees_cache(host):
            return DataView(folder, parts)
        keys = {place: cache.find_key(place) for _, place in parts}
        volumes = {place: Volume(self.copies.name_volume(key)) for place, key in keys.items() if key}
        return DataView(folder, tuple((name, volumes.get(place, place)) for name, place in parts))

    def _view_spaces(self, experiment: Experiment) -> DataView | None:
        """Return the data of a team that an experiment reads; None: the server is for one user."""
        root = self._hosts.roots.data
        if self._hosts.rules is None or isinstance(root, Volume):
            return None
        folders = list_job_folders(find_data_user(experiment), experiment.team_project)
        parts = tuple((path, f"{root}/{space.folder}") for path, space in folders)
        own = next((place for path, place in parts if not path), parts[-1][1])
        return DataView(own, parts)  # a process has no mounts: it sees its user's data, or that of its key's project

    def _list_sets_of(self, experiment: Experiment) -> frozenset[str]:
        """Return the keys of the sets in the cache that an experiment reads."""
        if not experiment.plan.policy.data:
            return frozenset()
        cache = self._find_cache()
        return frozenset(
            key for place in (cache.find_use(experiment.id) or {}).values() if (key := cache.find_key(place))
        )

    def _sees_cache(self, host: HostName) -> bool:
        return self._spec.folder is not None or self._hosts.is_this_machine(host)

    def _fetch_source(self, url: DataUrl, fetch: _Fetch) -> Path:
        if url.scheme is DataScheme.DATA:
            return self._find_folder(url, fetch.experiment)
        store = add_passed_keys(find_store(read_stores(self._hosts.settings.home), url), fetch.variables)

        def note(received: int, total: int, trouble: str) -> None:
            reason = trouble.removeprefix(f"{url}: ")
            subject = f"{url} ({reason})" if reason else str(url)
            fetch.report(WorkReport(Work.DATA, subject, received, max(received, total) or None))

        note(0, 0, "")
        # what one user's keys have fetched is not for another, who may not read it at its store
        is_own = self._hosts.rules is not None and store.passed_keys
        request = FetchRequest(
            url,
            open_remote(url, store),
            fetch.limit,
            store.etag_is_md5,
            fetch.stop,
            note,
            holder=fetch.experiment.owner.user if is_own else "",
        )
        return fetch_set(fetch.cache, request, fetch.hold)

    def _find_folder(self, url: DataUrl, experiment: Experiment) -> Path:
        """Return a folder of the data folder, as the hosts see it."""
        root = self._check_data_folder(url)
        path = root / url.path
        if self._hosts.rules is not None:
            named = find_space(url.names, experiment.owner.user)
            check_job_space(named, find_data_user(experiment), experiment.team_project)
            root = root / named.space.folder
            path = root.joinpath(*named.below)
        first = next(iter(self._hosts.names), None)
        if first is None or not self._hosts.is_this_machine(first):
            return path  # the engine reports when it is missing
        real = path.resolve()
        if not real.is_dir() or not real.is_relative_to(root.resolve()):
            raise EngineError(f"there is no folder {url}", "`riseml ls data://` shows what is there", permanent=True)
        return real

    def _check_data_folder(self, url: DataUrl) -> Path:
        root = self._hosts.find_target(None).roots.data
        if isinstance(root, Volume):
            text = f"train.data: {url} is in a volume, of which Docker mounts no part"
            raise Refused(text, "remove it from `data`: without `data` jobs see the whole volume as /data")
        return Path(root)

    def _check_sight(self) -> None:
        """Refuse data that must be fetched when a host neither sees the cache nor can hold a copy."""
        for name, executor in sorted(self._hosts.pool.executors.items()):
            if not self._sees_cache(name) and executor.capabilities.data is None:
                raise Refused(
                    f"train.data: the host {name} is another machine, and does not see what the server fetches",
                    "write `data_cache: {folder: /a/folder/that/all/hosts/see}` into pool.yml",
                )

    @property
    def _spec(self) -> CacheSpec:
        mode = self._hosts.mode
        return mode.spec.data_cache if isinstance(mode, PoolMode) else CacheSpec()

    def _find_cache(self) -> DataCache:
        named = self._spec.folder
        home = self._hosts.settings.home
        folder = home / _DEFAULT_FOLDER if named is None else Path(named) / f"riseml-{self._server[:16]}"
        with self._lock:
            if folder not in self._caches:
                self._caches[folder] = DataCache(folder)
            return self._caches[folder]
