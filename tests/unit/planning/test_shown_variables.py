"""The variables of a job as other people see them."""

from __future__ import annotations

from dataclasses import replace

from riseml.model import Experiment
from riseml.planning.launch import bind_job
from riseml.planning.shown_variables import ShownVariables, hide_values, list_variables
from tests.unit.control.simulation import make_experiment, make_plan

OPEN = make_experiment(
    4,
    replace(make_plan("master"), parameters=(("seed", "42"), ("api-key", "geheim"))),
    environment=(("MODE", "geheim"), ("TOKEN", "geheim")),
)
CLOSED = replace(OPEN, environment=())
"""The same after its end: the store has removed its `env`."""


def show(experiment: Experiment) -> ShownVariables:
    return list_variables(bind_job(experiment, experiment.gang[0]))


def test_no_value_of_env_and_none_that_looks_secret_is_shown() -> None:
    shown = show(hide_values(OPEN))
    assert shown.hidden == ["MODE", "TOKEN", "API_KEY"]
    assert shown.values["SEED"] == "42"
    assert "geheim" not in "".join(shown.values.values())


def test_an_experiment_without_its_env_names_the_variables_that_it_had() -> None:
    assert show(hide_values(CLOSED, ["MODE"])).hidden == ["MODE", "API_KEY"]
    assert show(hide_values(OPEN, ["OTHER"])).hidden == ["MODE", "TOKEN", "API_KEY"], "its own names count first"
