"""Virtual environments by content: uv makes each once, experiments share it, and nothing changes it afterwards.

An environment is made at its final path, because it cannot be moved. It counts as present once its `.ready` file
exists, which is written last. The installing processes inherit a lock, so that a second build waits until the last of
them has ended, even when the server that started the first build was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from riseml.errors import EngineError
from riseml.executors.base import BuildOrder
from riseml.executors.capabilities import EnvironmentReview, InventoryItem, InventoryKind
from riseml.executors.environments.makers import (
    PACKAGES,
    PROJECT,
    READY,
    EnvironmentMaker,
    EnvironmentOrder,
    ThisMachineMaker,
    make_environment_variables,
)
from riseml.executors.environments.venv_recipe import choose_packages, refuse_root_commands
from riseml.executors.removal import remove_tree
from riseml.folders import make_private_path
from riseml.model import Image, ImageSeen
from riseml.planning.image import parse_packages

_SCHEME = 1  # a new number makes every environment again
_LOCK_INTERVAL = 0.2  # seconds between two attempts to get the lock


class VirtualEnvironments:
    """The virtual environments below one folder.

    Args:
        root: the folder.
        gpus: whether they get the packages for GPUs.
        maker: makes them; None: this machine.
    """

    def __init__(self, root: Path, *, gpus: bool, maker: EnvironmentMaker | None = None) -> None:
        self._root = root
        self._gpus = gpus
        self._maker = maker or ThisMachineMaker()

    def find_folder(self, reference: str) -> Path:
        """Return the folder of an environment, which may not exist yet."""
        recipe = json.dumps([_SCHEME, reference, self._maker.identify_python(), self._gpus])
        return self._root / hashlib.sha256(recipe.encode()).hexdigest()[:20]

    def made_files_folder(self, reference: str) -> Path:
        """Return the folder in which the install steps of an environment ran; it holds the files that they made."""
        return self.find_folder(reference) / PROJECT

    def observe_environment(self, reference: str) -> ImageSeen:
        """Return whether an environment is present. An environment whose Python was removed from the machine is not."""
        folder = self.find_folder(reference)
        return ImageSeen(present=(folder / READY).exists() and self._maker.has_python(folder))

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

    def remove_environment(self, name: str) -> None:
        """Remove an environment, if it is there.

        Raises:
            EngineError: a build makes it at this moment.
        """
        folder = self._root / name
        if not folder.is_dir() or folder.parent != self._root:
            return
        lock = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _try_lock(lock):
                raise EngineError(f"the environment {name} is being made", "try again when its build has ended")
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

    def ensure_environment(self, order: BuildOrder) -> None:
        """Make the environment unless it is present.

        Raises:
            EngineError: a step needs root, a step failed, or the order was cancelled.
        """
        refuse_root_commands(order.image.install)
        folder = self.find_folder(order.image.reference)
        packages, remark = choose_packages(order.image.base, gpus=self._gpus)
        make_private_path(self._root)
        with _hold_lock(folder.with_suffix(".lock"), order) as lock:
            if self.observe_environment(order.image.reference).present:
                return
            added = "".join(f", {name}" for name in packages)
            order.emit(f"Making a virtual environment with {self._maker.describe_python()}{added}")
            if remark:
                order.emit(remark)
            self._maker.make_environment(EnvironmentOrder(order, folder, packages), lock)
            (folder / READY).touch()


def _describe_environment(parts: list[str]) -> str:
    return f"a virtual environment with {', '.join(parts)}"


@contextmanager
def _hold_lock(path: Path, order: BuildOrder) -> Iterator[int]:
    """Hold the lock of an environment, so that one build at a time makes it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        cancelled = Event()
        order.cancellation.attach(cancelled.set)
        waiting = False
        while not _try_lock(lock):
            if not waiting:
                order.emit("Waiting for another build of the same environment")
            waiting = True
            cancelled.wait(_LOCK_INTERVAL)
            order.cancellation.check()
        yield lock
    finally:
        os.close(lock)


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
