"""The answer about an experiment that was just changed."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from riseml.base.errors import StoreError
from riseml.base.names import parse_id
from riseml.base.settings import Settings
from riseml.server.api.views.named_experiments import show_changed_details, show_details
from riseml.server.app import make_application
from riseml.store.metrics.metric_store import MetricStore
from tests.support.callers import ME
from tests.unit.server.api.conftest import close_all
from tests.unit.store.submissions import submit


class UnreadableMetrics(MetricStore):
    """Its database is away."""

    def read_summaries(self, experiments: Collection[int]) -> NoReturn:
        raise StoreError("the store is away")


def test_a_kill_that_was_written_is_answered_without_metrics(tmp_path: Path) -> None:
    made = make_application(Settings(tmp_path, tmp_path / "o", tmp_path / "d", executor="process"), threading.Event())
    services = made.services
    details = (services.stores.experiments.get_experiment(submit(services.stores.experiments).id),)
    unreadable = UnreadableMetrics(made.database, services.stores.logs)
    away = replace(services, stores=replace(services.stores, metrics=unreadable))
    with pytest.raises(StoreError):
        show_details(details, parse_id("1"), away, ME)
    assert show_changed_details(details, parse_id("1"), away, ME) == show_details(details, parse_id("1"), services, ME)
    close_all(made)
