"""Sites of faults: an executor, and a folder for the homes of its servers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig
from tests.support.slurm_cluster import SlurmCluster


@dataclass(frozen=True, slots=True)
class Site:
    """One executor."""

    folder: Path  # for homes
    engine: str | None  # its address; None for processes of this machine
    cluster: SlurmCluster | None = None  # takes all jobs, when there is one

    @property
    def name(self) -> str:
        """The executor's name in the settings."""
        if self.cluster is not None:
            return "slurm"
        return "process" if self.engine is None else "docker"

    def home(self) -> Path:
        """Return a new home; its path is short, because it holds a socket."""
        made = self.folder / uuid.uuid4().hex[:8]
        return made if self.cluster is None else made / "home"  # beside it is the folder that the nodes share

    @contextmanager
    def rig(self, orders: Iterable[str] = (), **environment: str) -> Iterator[PatientRig]:
        """Give a rig whose server is not started yet, and remove everything of it afterwards."""
        home = self.home()
        if self.cluster is not None:
            self.cluster.write_pool(home)
        rig = PatientRig(home, self.engine, orders, **environment)
        rig.host = self.cluster or rig.host
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
