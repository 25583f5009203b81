"""When experiments last used environments and snapshots: what a clean-up may remove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.model import Image, copy_name, resolve_base
from riseml.store.codec import from_json
from riseml.store.database import Database
from riseml.store.rows import read_resolved
from riseml.store.schema import experiments, kept_outputs, sets


@dataclass(frozen=True, slots=True)
class LastUses:
    """What the experiments of a store use now, and used before.

    A time is when the last experiment that used it ended. None means that an experiment that is not closed uses it.
    """

    open: frozenset[int]  # ids of the experiments that are not closed
    closed: Mapping[int, datetime]  # ids of the others, and when each ended
    environments: Mapping[str, datetime | None]  # by the reference of the image
    snapshots: Mapping[str, datetime | None]  # by digest


NOTHING_USED = LastUses(frozenset(), {}, {}, {})


class LastUseReader:
    """Reads the last uses from one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_last_uses(self, *, spares_kept: bool = False) -> LastUses:
        """Return what is used now, and when everything else was last used.

        Args:
            spares_kept: what an experiment used whose outputs a user keeps counts as used now.
        """
        searched = sa.and_(sets.c.search.isnot(None), sets.c.search_end.is_(None))  # trials that follow need it, too
        columns = (experiments.c.id, experiments.c.plan, experiments.c.snapshot, experiments.c.closed)
        moments = (experiments.c.resolved, experiments.c.created_at, experiments.c.ended_at)
        unfinished: set[int] = set()
        finished: dict[int, datetime] = {}
        environments: dict[str, datetime | None] = {}
        snapshots: dict[str, datetime | None] = {}
        with self._database.read_transaction() as connection:
            kept_ids = (
                frozenset(connection.execute(sa.select(kept_outputs.c.experiment_id)).scalars()) if spares_kept else ()
            )
            query = sa.select(*columns, *moments, searched.label("searched"))
            for row in connection.execute(query.outerjoin(sets, experiments.c.set_id == sets.c.id)).mappings():
                is_used = not row["closed"] or row["searched"] or row["id"] in kept_ids
                at = None if is_used else row["ended_at"] or row["created_at"]
                if row["closed"]:
                    finished[row["id"]] = row["ended_at"] or row["created_at"]
                else:
                    unfinished.add(row["id"])
                for image in _read_images(row):
                    _note_use(environments, copy_name(image.reference), at)
                if row["snapshot"]:
                    _note_use(snapshots, row["snapshot"], at)
        return LastUses(frozenset(unfinished), finished, environments, snapshots)


def _read_images(row: sa.RowMapping) -> Iterator[Image]:
    """Yield the environments of one experiment; the rest of its plan is not read."""
    resolved = read_resolved(row["resolved"])
    images = (row["plan"]["image"], *(image for _, image in row["plan"].get("role_images", ())))
    for image in images:
        yield resolve_base(from_json(image, Image), resolved)


def _note_use(last_uses: dict[str, datetime | None], name: str, at: datetime | None) -> None:
    before = last_uses.get(name, at)
    last_uses[name] = None if at is None or before is None else max(at, before)
