"""Virtual environments by content: uv makes each once, experiments share it, and nothing changes it afterwards.

An environment is made at its final path, because it cannot be moved. It counts as present once its `.ready` file
exists, which is written last. A build belongs to the experiments that wait for its environment: it outlives the server,
the next one follows it, and a build that no experiment waits for is ended (`end_unwanted_builds`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from riseml.base.errors import EngineError, RisemlError
from riseml.base.faultpoints import Point, reach
from riseml.base.folders import make_private_path
from riseml.executors.base import BuildRequest
from riseml.executors.capabilities import EnvironmentReview, InventoryItem, InventoryKind, ListUsed, never
from riseml.executors.environments.makers import (
    ASIDE_SUFFIX,
    BUILD_SUFFIX,
    PACKAGES,
    PROJECT,
    READY,
    EnvironmentMaker,
    EnvironmentRequest,
    make_environment_variables,
    read_order,
)
from riseml.executors.environments.venv_recipe import choose_packages, refuse_root_commands
from riseml.executors.this_machine.removal import remove_tree
from riseml.model import Image, ImageObservation
from riseml.planning.image import parse_packages

_SCHEME = 1  # a new number makes every environment again
_LOCK_INTERVAL = 0.2  # seconds between two attempts to get the lock
_FIRST_PAUSE = 1.0  # seconds between two attempts to end a build
_LONGEST_PAUSE = 30.0

log = logging.getLogger(__name__)


class VirtualEnvironments:
    """The virtual environments below one folder; several threads use it at the same time.

    Args:
        root: the folder.
        server: id of the server.
        maker: makes them.
        gpus: whether they get the packages for GPUs.
    """

    def __init__(self, root: Path, server: str, maker: EnvironmentMaker, *, gpus: bool) -> None:
        self._root = root
        self._server = server
        self._maker = maker
        self._gpus = gpus
        self._guard = threading.Lock()  # guards the fields below, but `_has_builds`
        self._has_builds = True  # there may be builds of this server
        self._is_swept = False  # what a killed server has left of removals is being removed, or is gone
        self._waiting: Counter[Path] = Counter()  # how many builds wait for another one of the same environment
        self._ending: set[Path] = set()  # folders of builds that a thread ends at this moment

    def find_folder(self, reference: str) -> Path:
        """Return the folder of an environment, which may not exist yet."""
        recipe = json.dumps([_SCHEME, reference, self._maker.identify_python(), self._gpus])
        return self._root / hashlib.sha256(recipe.encode()).hexdigest()[:20]

    def made_files_folder(self, reference: str) -> Path:
        """Return the folder in which the install steps of an environment ran; it holds the files that they made."""
        return self.find_folder(reference) / PROJECT

    def observe_environment(self, reference: str) -> ImageObservation:
        """Return whether an environment is present. An environment whose Python was removed from the machine is not."""
        folder = self.find_folder(reference)
        return ImageObservation(present=(folder / READY).exists() and self._maker.has_python(folder))

    def list_packages(self, reference: str) -> tuple[str, ...] | None:
        """Return the packages that an environment had when it was made; None: not known."""
        try:
            text = (self.find_folder(reference) / PACKAGES).read_text("utf-8", "replace")
        except OSError:
            return None
        return parse_packages(text)

    def make_variables(self, reference: str, path: str) -> dict[str, str]:
        """Return the variables that put a process into an environment.

        Args:
            reference: of the environment.
            path: the PATH of the process outside the environment.
        """
        return make_environment_variables(self.find_folder(reference), path)

    def list_environments(self, server: str, references: frozenset[str]) -> Iterator[InventoryItem]:
        """Yield every environment, complete or not.

        Args:
            server: id of the server that owns them.
            references: environments that may be present; the name of a folder alone does not identify one.
        """
        names = {self.find_folder(reference).name: reference for reference in references}
        for folder in sorted(self._root.glob("*/")):
            if folder.suffix in (BUILD_SUFFIX, ASIDE_SUFFIX):
                continue
            try:
                made_at = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
            except FileNotFoundError:  # it is being removed
                continue
            yield InventoryItem(
                InventoryKind.ENVIRONMENT,
                folder.name,
                f"environments/{folder.name}",
                server,
                None,
                names.get(folder.name, ""),
                size=_measure_folder(folder),
                made_at=made_at,
            )

    def remove_environment(self, name: str, is_needed: Callable[[], bool] = never) -> None:
        """Remove an environment, if it is there. Until all of it is gone, it counts as incomplete.

        Args:
            name: of its folder.
            is_needed: is asked when no job can begin with it any more; True: it stays.

        Raises:
            EngineError: a build makes it at this moment.
        """
        folder = self._root / name
        if not folder.is_dir() or folder.parent != self._root or name == os.pardir:
            return
        lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _try_lock(lock) or folder.with_suffix(BUILD_SUFFIX).exists():
                raise EngineError(f"the environment {name} is being made", "try again when its build has ended")
            ready = folder / READY
            was_ready = ready.exists()
            ready.unlink(missing_ok=True)  # first: a server that is killed here leaves no half environment
            if is_needed():
                if was_ready:
                    ready.touch()
                raise EngineError(f"an experiment needs the environment {name}")
            reach(Point.DISCARDING)
            remove_tree(folder)
        finally:
            os.close(lock)

    def review_environment(self, image: Image) -> EnvironmentReview:
        """Return the environment that `ensure_environment` would make of an image, or why it would refuse."""
        packages, _ = choose_packages(image.base, gpus=self._gpus)
        parts = [self._maker.describe_python(), *packages]
        try:
            refuse_root_commands(image.install)
        except EngineError as error:
            return EnvironmentReview(_describe_environment(parts), error.message)
        return EnvironmentReview(_describe_environment(parts))

    def ensure_environment(self, request: BuildRequest) -> None:
        """Make the environment unless it is present.

        Raises:
            EngineError: a step needs root, a step failed, or the request was cancelled.
        """
        refuse_root_commands(request.image.install)
        folder = self.find_folder(request.image.reference)
        packages, remark = choose_packages(request.image.base, gpus=self._gpus)
        make_private_path(self._root)
        self._has_builds = True
        with self._hold_lock(folder, request):
            if self.observe_environment(request.image.reference).present:
                return
            added = "".join(f", {name}" for name in packages)
            announcements = [f"Making a virtual environment with {self._maker.describe_python()}{added}"]
            announcements += [remark] if remark else []
            environment = EnvironmentRequest(
                request, folder, packages, tuple(announcements), lambda: self._is_awaited(folder)
            )
            try:
                self._maker.make_environment(environment)
                (folder / READY).touch()
            finally:
                followed = request.cancellation.asked and self._is_awaited(folder)
                if not followed and not self._end_build(folder):
                    self._end_in_thread(folder)

    def end_unwanted_builds(self, references: frozenset[str], list_used: ListUsed = frozenset) -> None:
        """End the builds of this server, in threads of their own, that no experiment waits for and no thread follows.

        Args:
            references: the environments that experiments wait for.
            list_used: returns the environments of all open experiments: what a removal has left of them stays.
        """
        if not self._has_builds:  # each pass of the control loop asks
            return
        self._has_builds = False  # before the look: a build that begins meanwhile sets it again
        awaited = {self.find_folder(reference).name for reference in references}
        names = _list_names(self._root)
        self._end_removals(frozenset(names), lambda: references | list_used())
        for name in names:
            folder = self._root / name
            if folder.suffix not in (BUILD_SUFFIX, ASIDE_SUFFIX):
                continue
            self._has_builds = True
            environment = folder.with_suffix("")
            if environment.name in awaited and not (environment / READY).exists():
                continue
            order = read_order(folder)  # None: a server was killed before the build began
            if order is None or order.get("server") == self._server:
                self._end_in_thread(environment)

    def _end_removals(self, names: frozenset[str], list_used: ListUsed) -> None:
        """Remove, once and in a thread, the environments that a server was removing when it was killed.

        Args:
            names: of all files and folders.
            list_used: returns the environments that stay: a job may use one, and the build of an awaited one replaces
                it.
        """
        with self._guard:
            if self._is_swept:
                return
            self._is_swept = True
        folders = [
            self._root / name
            for name in sorted(names)
            if "." not in name and not names & {f"{name}{BUILD_SUFFIX}", f"{name}{ASIDE_SUFFIX}"}
        ]
        incomplete = [folder for folder in folders if not (folder / READY).exists()]
        used = frozenset(map(self.find_folder, list_used())) if incomplete else frozenset()
        for folder in incomplete:
            if folder not in used:
                self._end_in_thread(folder)

    def _end_in_thread(self, folder: Path) -> None:
        """End the build of an environment in a thread, which tries until it succeeds or another thread follows the
        build."""
        with self._guard:
            if folder in self._ending:
                return
            self._ending.add(folder)

        def end() -> None:
            pause = _FIRST_PAUSE
            while not self._try_end(folder):
                threading.Event().wait(pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)

        threading.Thread(target=end, name="end-build", daemon=True).start()

    def _try_end(self, folder: Path) -> bool:
        """End the build of an environment; return False when that must be tried again."""
        lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            ended = not _try_lock(lock) or self._end_build(folder)
            if ended:
                with self._guard:
                    self._ending.discard(folder)
            return ended
        finally:
            os.close(lock)

    def _end_build(self, folder: Path) -> bool:
        """End the build of an environment whose lock this thread has, and remove what an incomplete one left; return
        False when it goes on."""
        try:
            self._maker.end_build(folder.with_suffix(BUILD_SUFFIX))
            if not (folder / READY).exists():
                remove_tree(folder)
        except (RisemlError, OSError) as error:
            log.warning("the build of the environment %s is ended later: %s", folder.name, error)
            return False
        return True

    def _is_awaited(self, folder: Path) -> bool:
        with self._guard:
            return self._waiting[folder] > 0

    @contextmanager
    def _hold_lock(self, folder: Path, request: BuildRequest) -> Iterator[None]:
        """Hold the lock of an environment, so that one thread at a time makes it or follows its build."""
        lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _try_lock(lock):
                request.emit("Waiting for another build of the same environment")
                with self._count_waiting(folder):
                    _wait_for_lock(lock, request)
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _count_waiting(self, folder: Path) -> Iterator[None]:
        with self._guard:
            self._waiting[folder] += 1
        try:
            yield
        finally:
            with self._guard:
                self._waiting[folder] -= 1


def _describe_environment(parts: list[str]) -> str:
    return f"a virtual environment with {', '.join(parts)}"


def _wait_for_lock(lock: int, request: BuildRequest) -> None:
    cancelled = threading.Event()
    request.cancellation.attach(cancelled.set)
    while not _try_lock(lock):
        cancelled.wait(_LOCK_INTERVAL)
        request.cancellation.check()


def _list_names(root: Path) -> list[str]:
    try:
        return os.listdir(root)
    except FileNotFoundError:
        return []


def _measure_folder(folder: Path) -> int:
    """Return the bytes of all files below a folder, in which a build may remove files meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
