"""Sites of faults: an executor, and a folder for the homes of its servers."""

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
    """One executor."""

    folder: Path  # for homes
    engine: str | None  # its address; None for processes of this machine

    @property
    def name(self) -> str:
        """The executor's name in the settings."""
        return "process" if self.engine is None else "docker"

    def home(self) -> Path:
        """Return a new home; its path is short, because it holds a socket."""
        return self.folder / uuid.uuid4().hex[:8]

    @contextmanager
    def rig(self, orders: Iterable[str] = (), **environment: str) -> Iterator[PatientRig]:
        """Give a rig whose server is not started yet, and remove everything of it afterwards."""
        rig = PatientRig(self.home(), self.engine, orders, **environment)
        try:
            yield rig
        finally:
            rig.end_and_clean_up()


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault, a row of the table."""

    name: str
    inflict: Callable[[Site], Tally]
    where: tuple[str, ...] = ("docker", "process")  # executors
