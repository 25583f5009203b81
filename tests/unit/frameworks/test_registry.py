"""The list of frameworks, and the rules that each plug-in keeps."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.base.states import JobDuty
from riseml.frameworks import base
from riseml.frameworks.base import Framework
from riseml.frameworks.registry import FRAMEWORKS, choose_framework, find_framework
from riseml.planning.image import Manifest
from riseml.planning.launch import job_addresses
from riseml.planning.plan import first_jobs, make_plan
from riseml.spec.config.types import Horovod, RoleEnd, RoleSection, Spec, TensorFlow, Train
from riseml.spec.scalars.placeholders import BUILT_IN_PLACEHOLDERS
from riseml.spec.scalars.role_names import list_role_placeholders
from tests.unit.frameworks.layouts import gang, make_experiment

ROOT = Path(__file__).parents[3]
METHODS = {name for name, _ in inspect.getmembers(Framework, inspect.isfunction) if not name.startswith("_")}
FILES = {
    "plain": Train(("true",), image="base"),
    "roles": Train(("true",), image="base", roles=(RoleSection("one", ("true",), ends=RoleEnd.DECIDES),)),
    "horovod": Train(("true",), image="base", framework="tensorflow", tensorflow=TensorFlow(horovod=Horovod(2, 2))),
}
BY_NAME = pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.name)


def test_the_seam_is_narrow() -> None:
    assert len(METHODS) <= 5


def test_names_are_unique_and_in_order() -> None:
    names = [framework.name for framework in FRAMEWORKS]
    assert names == ["plain", *sorted(set(names) - {"plain"})]


def test_frameworks_never_meet() -> None:
    """A new one is named in import-linter's contract too."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if one["name"] == "frameworks never meet"]
    folder = Path(base.__file__).parent
    there = {path.stem for path in folder.glob("*.py")} - {
        "__init__",
        "base",
        "process_group",
        "registry",
        "tensorboard",
    }
    assert set(contract["modules"]) == {f"riseml.frameworks.{name}" for name in there}
    assert {type(framework).__module__ for framework in FRAMEWORKS} == set(contract["modules"])


@BY_NAME
def test_a_framework_is_its_methods_and_nothing_else(framework: Framework) -> None:
    assert {name for name in dir(framework) if not name.startswith("_")} == METHODS | {"name"}
    assert vars(framework) == {}


@BY_NAME
def test_a_framework_keeps_the_rules_of_the_seam(framework: Framework) -> None:
    check_rules(framework, FILES.get(framework.name, Train(("true",), image="base", framework=framework.name)))


def check_rules(framework: Framework, train: Train) -> None:
    roles = framework.roles(train)
    assert roles[0].part is JobDuty.DECIDES
    assert len({role.name for role in roles}) == len(roles)
    assert JobDuty.PREPARES not in {role.part for role in roles}
    experiment = make_experiment(Spec("toaster", train))
    assert [job.name for job in gang(experiment)] == [role.name for role in roles]
    for job in gang(experiment):
        binding = framework.bind(experiment.plan, job.name, job_addresses(experiment))
        own = list_role_placeholders([role.name for role in train.roles])
        assert set(binding.placeholders) == (BUILT_IN_PLACEHOLDERS | own) - {"data_dir", "output_dir"}
        assert "true" in framework.script(experiment.plan, job.name, ["true"]).splitlines()[-1]


def test_a_file_chooses_its_framework() -> None:
    assert choose_framework(Train(())).name == "plain"
    assert choose_framework(Train((), framework="jax")).name == "jax"
    assert choose_framework(Train((), framework="pytorch")).name == "pytorch"
    assert choose_framework(Train((), roles=(RoleSection("learner", ("true",)),))).name == "roles"
    assert choose_framework(Train((), framework="tensorflow")).name == "tensorflow"


def test_an_unknown_framework_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot run the framework 'caffe'") as refusal:
        choose_framework(Train((), framework="caffe"))
    assert refusal.value.hint == "it runs horovod, jax, pytorch, tensorflow, and any `image` without one"


def test_a_file_without_any_image_is_refused() -> None:
    with pytest.raises(UsageError, match=r"train\.image is missing"):
        make_experiment(Spec("toaster", Train(("true",))))


def test_first_records_have_a_build_before_the_jobs() -> None:
    plan = make_plan(Spec("toaster", Train(("true",), framework="tensorflow")), (), Manifest())
    assert [(job.name, job.part) for job in first_jobs(plan)] == [
        ("build", JobDuty.PREPARES),
        ("train", JobDuty.DECIDES),
    ]
    assert plan.image.base == "tensorflow/tensorflow:2.21.0"
    with pytest.raises(UsageError):
        find_framework("caffe")
