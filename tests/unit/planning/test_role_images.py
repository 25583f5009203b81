"""Roles with an environment of their own: what each job runs in, in the plan and in the launch."""

from __future__ import annotations

import pytest

from riseml.base.names import JobName
from riseml.model import Experiment, Image
from riseml.planning.companions import plan_notebook
from riseml.planning.image import Manifest, plan_image
from riseml.planning.plan import make_plan
from riseml.spec.config.loader import load_config
from riseml.spec.config.types import Limits, Resources
from tests.unit.control.simulation import make_experiment

STEP = "pip install a"


def plan(train: str) -> Experiment:
    spec = load_config(f"project: x\ntrain:\n  run: python t.py\n{train}")
    return make_experiment(1, make_plan(spec, (), Manifest()))


@pytest.mark.parametrize(
    ("train", "images"),
    [
        (
            "  image: a\n  install: pip install a\n  roles: {learner: {}, actor: {count: 2, image: b}, judge: }",
            {"learner": ("a", STEP), "actor.1": ("b",), "actor.2": ("b",), "judge": ("a", STEP)},
        ),
        (
            "  image: a\n  install: pip install a\n  roles: {learner: {install: pip install b}, actor: {image: a}}",
            {"learner": ("a", "pip install b"), "actor": ("a",)},
        ),
        (
            "  roles: {learner: {image: a}, actor: {image: {name: b, install: pip install a}}, judge: {image: a}}",
            {"learner": ("a",), "actor": ("b", STEP), "judge": ("a",)},
        ),
    ],
)
def test_a_role_has_its_own_environment_or_that_of_train(train: str, images: dict[str, tuple[str, ...]]) -> None:
    experiment = plan(train)
    found = {job.name: experiment.image_of(job.name) for job in experiment.gang}
    assert {name: (image.base, *image.install) for name, image in found.items()} == images
    assert set(experiment.images) == set(found.values()), "each environment once, and none that no job uses"


def test_a_role_that_says_what_train_says_makes_no_second_environment() -> None:
    train = "  image: a\n  install: pip install a\n  roles: {learner: {}, actor: {image: a, install: pip install a}}"
    experiment = plan(train)
    assert experiment.images == (plan_image("a", (STEP,), Manifest()),)
    assert experiment.plan.role_images == ()


def test_each_base_stands_for_its_own_image() -> None:
    one = plan("  image: a\n  roles: {learner: {}, actor: {image: b}, judge: {image: a, install: pip install a}}")
    resolved = (("a", "a@sha256:1"), ("b", "b@sha256:2"))
    experiment = make_experiment(1, one.plan, resolved=resolved)
    bases = [experiment.image_of(JobName(name)).resolved for name in ("learner", "actor", "judge")]
    assert bases == ["a@sha256:1", "b@sha256:2", "a@sha256:1"]


def test_a_notebook_has_one_environment() -> None:
    notebook = plan_notebook(
        plan("  roles: {learner: {image: a}, actor: {image: b}}").plan, Resources(), Limits(), 60.0
    )
    assert [image.base for image in notebook.images] == [Image("a").base]
