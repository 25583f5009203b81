"""Leftovers on hosts: what no open experiment owns is found and removed. More of it: tests/real/api/test_clean.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.base.names import JobName
from riseml.base.states import State
from riseml.executors.pool import HostPool
from riseml.model import ContainerObservation, JobKey
from riseml.server.data.clean import Cleaner
from riseml.server.data.leftover_judge import CleanRequest
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.simulation import make_plan
from tests.unit.server.memory_pool import H1, H2, make_host
from tests.unit.server.stored_experiments import NOW, add_experiment, open_application

REQUEST = CleanRequest(caches=False, idle=timedelta(0))
OPEN, LOST = JobKey(1, JobName("train"), 1), JobKey(9, JobName("train"), 1)


@pytest.fixture
def host() -> MemoryExecutor:
    """A host with a container of experiment 1, and one of an experiment that no store has."""
    host = make_host(H1)
    for key in (OPEN, LOST):
        host.containers[key] = ContainerObservation(key, str(key), started=True)
    return host


@pytest.fixture
def cleaner(tmp_path: Path, host: MemoryExecutor) -> Iterator[Cleaner]:
    """Experiment 1 runs."""
    with open_application(tmp_path) as application:
        add_experiment(application.services.stores, make_plan("train"), State.RUNNING)
        yield replace(application.services.data.cleaner, pool=HostPool((host,), 2.0, lambda *_: None))


def test_what_no_experiment_owns_is_removed(cleaner: Cleaner, host: MemoryExecutor) -> None:
    cleaning = cleaner.find_leftovers(REQUEST, NOW)
    assert [(leftover.host, leftover.item.experiment, leftover.why) for leftover in cleaning.leftovers] == [
        (H1, 9, "its experiment has ended, or was never stored")
    ]
    assert [leftover.removed for leftover in cleaner.remove_leftovers(cleaning).leftovers] == [True]
    assert list(host.containers) == [OPEN]
    assert cleaner.find_leftovers(REQUEST, NOW).leftovers == ()


def test_a_host_that_does_not_answer_is_named_and_keeps_what_it_has(cleaner: Cleaner, host: MemoryExecutor) -> None:
    cleaning = cleaner.find_leftovers(REQUEST, NOW)
    host.faults.silent = True
    assert cleaner.find_leftovers(REQUEST, NOW).silent == (H1,)
    (leftover,) = cleaner.remove_leftovers(cleaning).leftovers
    assert not leftover.removed
    assert leftover.problem


def test_a_host_that_has_left_the_pool_keeps_what_it_has(cleaner: Cleaner) -> None:
    (leftover,) = cleaner.find_leftovers(REQUEST, NOW).leftovers
    assert cleaner.remove_leftover(replace(leftover, host=H2)).problem == "host h2 cannot remove it any more"


@pytest.mark.parametrize(("length", "message"), [(7, "is too short for the id of a server"), (8, "is this server")])
def test_another_server_is_named_by_enough_of_its_id(cleaner: Cleaner, length: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cleaner.find_leftovers(replace(REQUEST, foreign=cleaner.server[:length]), NOW)
