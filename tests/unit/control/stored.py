"""The same histories with the real store behind the loop.

Every record goes through its tables, every change is an event in the same transaction, and the store itself refuses a
save that was decided on an old version.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from riseml.base.names import HostName
from riseml.base.states import State
from riseml.control.observation import Observation
from riseml.model import Experiment, World
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.schema import events, experiments, jobs, placements, sets
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.history import History
from tests.unit.control.simulation import START, Simulation


@dataclass
class StoredSimulation(Simulation):
    """Keeps its records in a store. The laws check copies, which are compared with the tables before every pass."""

    rows: ExperimentStore | None = None
    database: Database | None = None

    def submit(self, experiment: Experiment) -> Experiment:
        plans = ((experiment.plan, experiment.jobs),)
        (detail,), _ = self._rows.add_experiments(
            NewExperiments(experiment.owner, experiment.project, "", "", plans, team_project=experiment.team_project),
            START,
        )
        assert detail.experiment.id == experiment.id, "one after the other"
        return super().submit(detail.experiment)

    def kill(self, identity: int) -> None:
        super().kill(identity)
        self._rows.request_kill([identity])

    def stop(self, identity: int) -> None:
        super().stop(identity)
        assert self.database is not None
        here = sa.and_(experiments.c.id == identity, experiments.c.ended_at.is_(None), experiments.c.wanted == "RUN")
        stopped = experiments.update().where(here).values(wanted="STOP", version=experiments.c.version + 1)
        with self.database.write_transaction() as connection:
            connection.execute(stopped)

    def restart(self) -> None:
        super().restart()
        assert self.database is not None
        self.rows = ExperimentStore(self.database)

    def world(self) -> World:
        assert self.database is not None
        world = self._rows.load_world()
        assert world.experiments == tuple(self.open.values()), "what was saved is what is read"
        assert world == ExperimentStore(self.database).load_world(), "the next server reads the same"
        return world

    def check_events(self) -> None:
        """I8: the events of each experiment are its states, in order, each of them once."""
        for identity, states in self.history.items():
            told = [event.state for event in self._rows.read_events(identity, 0) if event.job is None]
            changes = [state for state, before in zip(told, (None, *told), strict=False) if state is not before]
            assert changes == states, "I8"

    @property
    def _rows(self) -> ExperimentStore:
        assert self.rows is not None, "it has a store"
        return self.rows

    def _save(self, old: Experiment, new: Experiment, seen: Observation) -> bool:
        known = self.stored[old.id].version == old.version
        if known:
            self.witness.saves(old, new, seen)
        saved = self._rows.save_decision(old, new, self.now)
        assert saved == known, "the store takes what was decided on its newest version, and nothing else"
        if saved:
            if old.state is not new.state:
                self.history[new.id].append(new.state)
            self._store(replace(new, version=old.version + 1))
        return saved


class StoredHistory(History):
    """Starts every history with empty tables."""

    database: Database

    def make_simulation(self, hosts: dict[HostName, MemoryExecutor]) -> Simulation:
        with self.database.write_transaction() as connection:
            for table in (placements, events, jobs, experiments, sets):
                connection.execute(table.delete())
        return StoredSimulation(hosts, database=self.database, rows=ExperimentStore(self.database))

    def teardown(self) -> None:
        super().teardown()
        assert isinstance(self.simulation, StoredSimulation)
        self.simulation.check_events()
        assert all(states[0] is State.CREATED for states in self.simulation.history.values())


@contextmanager
def stored_history() -> Iterator[type[StoredHistory]]:
    """Yield a class of histories with a store of its own; the store need not survive a power cut."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder)}/riseml.db")
        sa.event.listen(database.engine, "connect", lambda one, _: one.execute("PRAGMA synchronous=OFF"))
        database.engine.dispose()
        try:
            yield type("StoredHistory", (StoredHistory,), {"database": database})
        finally:
            database.close()
