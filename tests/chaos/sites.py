"""Where a harm is done: an executor, and folders for the homes of its servers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig


@dataclass(frozen=True, slots=True)
class Site:
    """One executor: an engine's address, or None for processes of this machine."""

    folder: Path
    engine: str | None

    @property
    def name(self) -> str:
        """What the settings call the executor."""
        return "process" if self.engine is None else "docker"

    def home(self) -> Path:
        """A fresh home; short, since a socket's path has to be."""
        return self.folder / uuid.uuid4().hex[:8]

    @contextmanager
    def rig(self, orders: Iterable[str] = (), **environment: str) -> Iterator[PatientRig]:
        """A server of its own that has not been started; whatever a failure leaves of it is removed."""
        rig = PatientRig(self.home(), self.engine, orders, **environment)
        try:
            yield rig
        finally:
            rig.end()


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of harm, a row of the table. `where` are the executors that it can be done to."""

    name: str
    inflict: Callable[[Site], Tally]
    where: tuple[str, ...] = ("docker", "process")
