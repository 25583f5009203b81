"""What experiments use of what is kept, and when they last did: environments and the files of projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from riseml.model import Image
from riseml.store.codec import from_json
from riseml.store.database import Database
from riseml.store.schema import experiments


@dataclass(frozen=True, slots=True)
class LastUses:
    """By the time it was last used; None: an experiment that is not closed uses it now."""

    open: frozenset[int]
    environments: Mapping[str, datetime | None]
    snapshots: Mapping[str, datetime | None]


class UsageReader:
    """Reads it from one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_last_uses(self) -> LastUses:
        """What is used now, and was before."""
        columns = (experiments.c.id, experiments.c.plan, experiments.c.snapshot, experiments.c.closed)
        moments = (experiments.c.created_at, experiments.c.ended_at)
        unfinished: set[int] = set()
        environments: dict[str, datetime | None] = {}
        snapshots: dict[str, datetime | None] = {}
        with self._database.read_transaction() as connection:
            for row in connection.execute(sa.select(*columns, *moments)).mappings():
                at = (row["ended_at"] or row["created_at"]) if row["closed"] else None
                if at is None:
                    unfinished.add(row["id"])
                _note(environments, from_json(row["plan"]["image"], Image).reference, at)
                if row["snapshot"]:
                    _note(snapshots, row["snapshot"], at)
        return LastUses(frozenset(unfinished), environments, snapshots)


def _note(known: dict[str, datetime | None], name: str, at: datetime | None) -> None:
    before = known.get(name, at)
    known[name] = None if at is None or before is None else max(at, before)
