"""Environments that this machine makes: a build survives its server, and is ended by its own server alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.build_limits import BuildLimits
from riseml.executors.environments.makers import BUILD_SUFFIX
from riseml.executors.environments.this_machine import ThisMachineMaker
from riseml.executors.supervision.job_records import runs_now
from riseml.model import Image
from tests.support.builds import make_environment_request
from tests.unit.executors.running_jobs import run_job

SERVER = "s"  # the jobs in `running_jobs` belong to it


def make_maker(server: str = SERVER) -> ThisMachineMaker:
    return ThisMachineMaker(server, BuildLimits())


@pytest.mark.parametrize(("server", "runs"), [(SERVER, False), ("another", True)])
def test_a_build_is_ended_by_the_server_that_has_begun_it(server: str, *, runs: bool, tmp_path: Path) -> None:
    place = tmp_path / f"ab12{BUILD_SUFFIX}"
    place.mkdir()
    with run_job(place, "sleep 600") as record:
        make_maker(server).end_build(place)
        assert runs_now(record) is runs
        assert list(tmp_path.iterdir()) == []
    make_maker(server).end_build(place)


def test_an_environment_is_made_with_the_python_of_the_server(tmp_path: Path) -> None:
    lines: list[str] = []
    maker = make_maker()
    maker.make_environment(make_environment_request(tmp_path / "ab12", Image("python"), lines))
    assert lines[0] == "begin"
    assert maker.has_python(tmp_path / "ab12")
    assert not maker.has_python(tmp_path / "cd34")


def test_the_next_server_follows_a_build_without_its_lines_twice(tmp_path: Path) -> None:
    lines: list[str] = []
    order = make_environment_request(tmp_path / "ab12", Image("python"), lines)
    make_maker().make_environment(order)
    before = list(lines)
    make_maker().make_environment(order)
    assert lines == before
