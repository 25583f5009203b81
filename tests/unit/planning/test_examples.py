"""Every file that is right can be planned, too: RiseML's own examples, the founding text, the project's."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.planning.grid import grid_points
from riseml.planning.image import Manifest
from riseml.planning.plan import make_plan
from riseml.spec.config.loader import Overrides, load_config
from tests.unit.spec.examples import DISTRIBUTED, EXAMPLES

ROOT = Path(__file__).parents[3]
FILES = [ROOT / "riseml.yml.example", *sorted((ROOT / "examples").rglob("*.yml"))]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_planned(name: str) -> None:
    spec = load_config(EXAMPLES[name])
    for point in grid_points(spec.train):
        plan = make_plan(spec, point, Manifest())
        assert plan.jobs
        assert plan.project == spec.project


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_the_project_is_planned(path: Path) -> None:
    spec = load_config(path.read_text())
    assert make_plan(spec, grid_points(spec.train)[0], Manifest()).jobs


def test_the_founding_text_is_planned_with_its_parameters() -> None:
    given = Overrides((("num-layers", "4"), ("learning-rate", "0.01")))
    spec = load_config(DISTRIBUTED, overrides=given)
    plan = make_plan(spec, grid_points(spec.train)[0], Manifest())
    assert [job.name for job in plan.jobs] == ["master", "worker.1", "worker.2", "ps.1", "ps.2"]
    assert dict(plan.parameters) == {"num-layers": "4", "learning-rate": "0.01"}
    assert plan.jobs[0].resources.gpus == 4
    assert plan.jobs[3].resources.gpus == 0
