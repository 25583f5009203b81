"""The plan of one point of the grid: what it takes over from the spec as it is."""

from __future__ import annotations

from riseml.base.records import dataclass
from riseml.planning.image import Manifest
from riseml.planning.launch import bind_job
from riseml.planning.plan import make_plan
from riseml.spec.config.types import RunPolicy, Spec, Train
from riseml.spec.yaml.values import SourceFile, read_section
from riseml.store.codec import from_json, to_json
from tests.unit.control.simulation import make_experiment


@dataclass(frozen=True, slots=True)
class NicePolicy(RunPolicy):
    """A policy with one more key, as the recipe of docs/contributing.md adds it."""

    nice: int = 0


def test_a_new_key_of_the_policy_reaches_the_launch_without_being_named_on_the_way() -> None:
    file = SourceFile({"train": {"nice": 5, "priority": 3}})
    policy = read_section(file, ("train",), NicePolicy)
    assert policy == NicePolicy(priority=3, nice=5)
    plan = make_plan(Spec("x", Train(("true",), image="a", policy=policy)), (), Manifest())
    assert plan.policy is policy
    experiment = make_experiment(1, plan)
    assert bind_job(experiment, experiment.gang[0]).experiment.plan.policy is policy
    assert from_json(to_json(plan)["policy"], NicePolicy) == policy
