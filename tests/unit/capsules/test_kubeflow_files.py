"""Manifests of Kubeflow of a capsule: they are valid, and the operator's variables are left to it."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from riseml.base.errors import UsageError
from riseml.capsules.kubeflow_files import PYTORCHJOB, TFJOB, KubeflowKind, write_kubeflow
from tests.unit.capsules.exported_runs import CONFIG, read, run_of, small_run
from tests.unit.capsules.kubeflow import make_schema
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.planning.test_capsule import capsule_of, make


@pytest.mark.parametrize(("kind", "framework"), [(TFJOB, "tensorflow"), (PYTORCHJOB, "pytorch")])
def test_a_manifest_is_valid_for_the_published_schema(kind: KubeflowKind, framework: str) -> None:
    jobs = ("master", "worker.1", "worker.2", *(["ps.1"] if kind is TFJOB else []))
    manifest = read(write_kubeflow(small_run(*jobs, framework=framework), kind), f"{kind.kind.lower()}.yaml")
    Draft202012Validator(make_schema(kind.kind, kind.specs)).validate(manifest)
    replicas = manifest["spec"][kind.specs]
    assert {name: one["replicas"] for name, one in replicas.items()}["Worker"] == 2
    (container,) = replicas["Worker"]["template"]["spec"]["containers"]
    assert not {one["name"] for one in container["env"]} & kind.sets, "the operator sets them"
    for at in (0, 1):
        script = container["command"][-1].replace("exec /bin/sh", ": /bin/sh") + "\necho $RISEML_JOB $WORKER_INDEX"
        done = subprocess.run(
            ["sh", "-ec", script], env={"HOSTNAME": f"riseml-4-worker-{at}"}, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"worker.{at + 1} {at + 1}\n"
    assert f"riseml-4-worker-1:{2224}" in container["command"][-1]


def test_one_job_is_one_job_where_the_operator_makes_a_group_of_it() -> None:
    manifest = read(write_kubeflow(small_run("train", framework="pytorch"), PYTORCHJOB), "pytorchjob.yaml")
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    assert container["command"][-1].startswith("unset MASTER_ADDR MASTER_PORT RANK WORLD_SIZE\n")


def test_a_kind_of_jobs_is_for_its_framework() -> None:
    with pytest.raises(UsageError, match="is for pytorch") as refused:
        list(write_kubeflow(small_run("master", "worker.1"), PYTORCHJOB))
    assert refused.value.hint == "--tfjob, --compose, --slurm or --sh"


@pytest.mark.parametrize("written", ["", "plain"])  # by this version, and by an earlier one
def test_an_experiment_without_a_framework_has_none_for_kubeflow(written: str) -> None:
    capsule = capsule_of(make_experiment(4, replace(make_plan("train"), framework="plain")))
    assert capsule["framework"] == ""
    capsule["framework"] = written
    with pytest.raises(UsageError, match="this experiment has no framework"):
        list(write_kubeflow(run_of(capsule), TFJOB))


def test_a_manifest_of_a_capsule_with_a_long_name_is_valid() -> None:
    capsule = capsule_of(make())
    capsule["experiment"] = "9" * 33 + "-" + "8" * 60
    run = run_of(capsule, CONFIG)
    manifest = read(write_kubeflow(run, TFJOB), "tfjob.yaml")
    Draft202012Validator(make_schema(TFJOB.kind, TFJOB.specs)).validate(manifest)
    assert len(f"{manifest['metadata']['name']}-evaluator-100") <= 63, "the name of a pod, and of its service"
