"""This machine as a host: what it says of itself, what it shares, and what it refuses before a job starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import THIS_MACHINE, JobName
from riseml.control.actions import Signal
from riseml.executors.base import HostSetup
from riseml.executors.capabilities import InventoryKind
from riseml.executors.process.executor import ProcessExecutor
from riseml.model import JobKey, LogCursor
from tests.support.launches import make_sleeping_launch

KEY = JobKey(1, JobName("worker.1"), 1)


@pytest.fixture
def executor(tmp_path: Path) -> ProcessExecutor:
    """This machine without jobs."""
    return ProcessExecutor(THIS_MACHINE, "5e17e4", tmp_path)


def test_what_an_experiment_shares_is_there_until_it_is_released(executor: ProcessExecutor) -> None:
    executor.prepare(HostSetup(4, None))
    executor.prepare(HostSetup(4, None))
    observation = executor.observe(frozenset({"none"}))
    assert observation.networks == {4: ""}
    assert (observation.containers, observation.isolated) == ({}, False)
    assert not observation.images["none"].present
    (item,) = executor.list_inventory(frozenset())
    assert (item.kind, item.name, item.experiment) == (InventoryKind.FOLDER, "processes/4", 4)
    executor.discard_item(item)
    executor.release(4)
    assert executor.observe(frozenset()).networks == {}


def test_a_job_without_its_environment_is_refused_and_leaves_no_folder(executor: ProcessExecutor) -> None:
    executor.prepare(HostSetup(1, None))
    with pytest.raises(EngineError, match="environment of the experiment was removed") as raised:
        executor.start(make_sleeping_launch("5e17e4", 1, "10.213.0.0/26", 2), None)
    assert raised.value.permanent
    assert executor.observe(frozenset()).containers == {}


def test_a_job_that_is_not_there_is_stopped_and_removed_without_an_error(executor: ProcessExecutor) -> None:
    executor.stop(KEY, Signal.KILL)
    executor.remove(KEY)
    assert list(executor.read_log(KEY, LogCursor(), follow=False)) == []


def test_a_home_that_cannot_be_written_is_an_error_of_the_host(executor: ProcessExecutor, tmp_path: Path) -> None:
    (tmp_path / "processes" / "4").write_bytes(b"a file in the place of the folder")
    with pytest.raises(EngineError, match="the folder of the experiment"):
        executor.prepare(HostSetup(4, None))
