"""What runs for a point that a search has chosen: the plan of the values that change the jobs, with all its values."""

from __future__ import annotations

import pytest

from riseml.planning.grid import grid_points
from riseml.planning.image import Manifest
from riseml.planning.launch import list_parameter_variables
from riseml.planning.plan import make_plan, make_plans
from riseml.planning.trial_plan import make_templates, plan_trial
from riseml.spec.config.loader import load_config

ROLES = """\
project: x
train:
  image: python:3.11
  run: python t.py --lr {{lr}}
  roles:
    learner:
    actor: {count: "{{actors}}"}
  parameters:
    actors: [1, 3]
    lr: [0.1, 0.2]
"""
ONE_SHAPE = ROLES.replace('"{{actors}}"', "2").replace("    actors: [1, 3]\n", "")


def test_a_parameter_that_changes_the_jobs_chooses_among_plans() -> None:
    templates = make_templates(load_config(ROLES), Manifest())
    assert [values for values, _ in templates] == [(("actors", "1"),), (("actors", "3"),)]
    point = (("actors", "3"), ("lr", "0.2"))
    plan = plan_trial(templates, point)
    assert [job.name for job in plan.jobs] == ["learner", "actor.1", "actor.2", "actor.3"]
    assert plan.parameters == point


def test_without_such_a_parameter_one_plan_serves_every_point() -> None:
    templates = make_templates(load_config(ONE_SHAPE), Manifest())
    assert len(templates) == 1
    for value in ("0.1", "0.17"):
        assert plan_trial(templates, (("lr", value),)).parameters == (("lr", value),)


def test_a_point_with_other_values_has_no_plan() -> None:
    templates = make_templates(load_config(ROLES), Manifest())
    with pytest.raises(LookupError, match="actors"):
        plan_trial(templates, (("actors", "2"), ("lr", "0.1")))


CONDITIONAL = """\
project: x
train:
  image: a
  run: t --momentum {{momentum}} --lr "{{lr}}"
  parameters:
    optimizer: [adam, sgd]
    momentum: {values: [0.5], when: {optimizer: sgd}, default: a b}
    lr: [0.1]
"""


def test_a_parameter_that_is_not_there_has_its_default_in_lines_and_is_nowhere_else() -> None:
    spec = load_config(CONDITIONAL)
    present = (("optimizer", "sgd"), ("momentum", "0.5"), ("lr", "0.1"))
    absent = (("optimizer", "adam"), ("lr", "0.1"))
    templates = make_templates(spec, Manifest())
    for plan in (plan_trial(templates, absent, spec.train.parameters), make_plan(spec, absent, Manifest())):
        assert plan.jobs[0].run == ("t --momentum 'a b' --lr \"{{lr}}\"",)
        assert list_parameter_variables(plan) == {"OPTIMIZER": "adam", "LR": "0.1"}
    for plan in (plan_trial(templates, present, spec.train.parameters), make_plan(spec, present, Manifest())):
        assert plan.jobs[0].run == ('t --momentum {{momentum}} --lr "{{lr}}"',)
        assert list_parameter_variables(plan) == {"OPTIMIZER": "sgd", "MOMENTUM": "0.5", "LR": "0.1"}
    assert grid_points(spec.train) == (absent, present)


def test_a_nested_name_is_a_variable_with_underscores() -> None:
    spec = load_config("project: x\ntrain: {image: a, run: 't {{optimizer.lr}}', parameters: {optimizer.lr: 0.10}}\n")
    (plan,) = make_plans(spec, grid_points(spec.train), Manifest())
    assert list_parameter_variables(plan) == {"OPTIMIZER_LR": "0.10"}
