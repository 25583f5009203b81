"""What a team's server knows about its users: their quotas, and the hours that they have used."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime

from riseml.control.quotas import QuotaRules, QuotaTable, measure_plan
from riseml.control.usage import PlaceSpan, UsageTally, find_oldest_counted, find_place_end
from riseml.model import Experiment
from riseml.spec.server.types import QuotaDefaults
from riseml.store.placements import PlacementStore
from riseml.store.quotas import QuotaStore


class TeamLedger:
    """Reads the rules for each pass. The hours of places that have ended are read once, and added up from then on.

    Args:
        defaults: the quotas of server.yml.
        quotas: those that an administrator has set.
        placements: when experiments had places.
    """

    def __init__(self, defaults: QuotaDefaults, quotas: QuotaStore, placements: PlacementStore) -> None:
        self.defaults = defaults  # the quotas of server.yml
        self._quotas = quotas
        self._placements = placements
        self._lock = threading.Lock()
        self._tally: UsageTally | None = None  # None until the first pass

    def read_rules(self, experiments: Iterable[Experiment], now: datetime) -> QuotaRules:
        """Return the rules of a pass over these open experiments."""
        table = QuotaTable(self.defaults, self._quotas.load())
        with self._lock:
            if self._tally is None:
                since = find_oldest_counted(now, self.defaults.half_life)
                self._tally = UsageTally(self.defaults.half_life, now, self._placements.load_ended(since))
            return QuotaRules(table, self._tally.count(experiments, now))

    def note_saved(self, before: Experiment, after: Experiment, now: datetime) -> None:
        """Count the hours of a place that has ended with a decision that is saved."""
        ended = find_place_end(before, after, now)
        if ended is None or before.placed_at is None:
            return
        need = measure_plan(before.plan)
        with self._lock:
            if self._tally is not None:
                self._tally.move_to(now)
                self._tally.add(before.owner.user, PlaceSpan(before.placed_at, ended, need.gpus, need.cpus))
