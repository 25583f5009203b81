"""Which outputs may be removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from riseml.base.errors import Conflict
from riseml.base.names import parse_id
from riseml.base.states import State
from riseml.files.storage_files import StorageFiles
from riseml.server.api.output_rules import check_removable
from riseml.server.services import Stores
from tests.support.callers import ME
from tests.unit.control.simulation import make_plan
from tests.unit.server.stored_experiments import add_experiment, open_application


class Disk:
    """A disk with some free bytes."""

    def __init__(self, free: int) -> None:
        self.free = free

    def count_free(self) -> int:
        return self.free


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """Experiment 1 runs, and 2 has ended."""
    with open_application(tmp_path) as application:
        stores = application.services.stores
        add_experiment(stores, make_plan("train"), State.RUNNING)
        add_experiment(stores, make_plan("train"), State.FINISHED, closed=True)
        yield stores


def test_the_output_of_an_experiment_that_runs_stays(stores: Stores) -> None:
    with pytest.raises(Conflict, match="experiment 1 has not ended"):
        check_removable(parse_id("1"), ME, stores)
    check_removable(parse_id("2"), ME, stores)


@pytest.mark.parametrize(("free", "full"), [(16 << 20, False), ((16 << 20) - 1, True)])
def test_a_part_of_it_may_go_when_the_disk_is_full(stores: Stores, free: int, *, full: bool) -> None:
    files = cast(StorageFiles, Disk(free))
    if full:
        check_removable(parse_id("1"), ME, stores, files)
    else:
        with pytest.raises(Conflict, match="has not ended"):
            check_removable(parse_id("1"), ME, stores, files)
