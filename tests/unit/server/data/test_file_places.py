"""The files of outputs and data, on this machine or through a host."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import EngineError, NotFound
from riseml.base.names import parse_id
from riseml.base.states import CompanionKind
from riseml.model import Companion, Experiment, Owner
from riseml.planning.launch import output_folder
from riseml.server.data.file_places import open_data, open_output
from riseml.server.hosts.host_set import HostSet
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import make_host, make_hosts

ME = Owner("paul", os.getuid(), os.getgid())
NAME = parse_id("1")


@pytest.fixture
def hosts(tmp_path: Path) -> HostSet:
    return make_hosts(tmp_path, make_host())


@pytest.fixture
def experiment() -> Experiment:
    return make_experiment(1, make_plan("train"), owner=ME)


def test_an_output_on_this_machine_is_read_where_it_is(hosts: HostSet, experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no output folder"):
        open_output(hosts, [experiment], NAME).count_used()
    folder = tmp_path / "output" / output_folder(experiment)
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"x" * 100_000)
    assert open_output(hosts, [experiment], NAME).count_used() >= 100_000


def test_a_link_on_the_way_to_an_output_is_not_followed(hosts: HostSet, experiment: Experiment, tmp_path: Path) -> None:
    folder = tmp_path / "output" / output_folder(experiment)
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path)
    with pytest.raises(EngineError, match="cannot be opened"):
        open_output(hosts, [experiment], NAME).count_used()


def test_a_tensorboard_has_no_output_of_its_own(hosts: HostSet, experiment: Experiment) -> None:
    companion = Companion(CompanionKind.TENSORBOARD, 60.0, ("4",), ("paul/toaster/4",))
    reader = replace(experiment, plan=replace(experiment.plan, companion=companion))
    with pytest.raises(NotFound, match="1 trains nothing, and has no output"):
        open_output(hosts, [reader], NAME)


def test_the_data_folder_is_made_when_it_is_written(hosts: HostSet, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no data folder"):
        open_data(hosts, ME, writes=False).count_used()
    (tmp_path / "data").mkdir()
    assert open_data(hosts, ME, writes=False).count_used() >= 0
