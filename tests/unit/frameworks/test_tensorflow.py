"""TF_CONFIG by version and layout: whole values, and laws that hold for every cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.names import job_type
from riseml.base.states import JobDuty
from riseml.model import Experiment
from riseml.planning.launch import bind_job, job_addresses, job_variables
from riseml.spec.config.types import ChiefKey, Distributed, Resources, Spec, TensorBoard, TensorFlow, Train
from tests.unit.frameworks.layouts import (
    FLAGS,
    LAYOUTS,
    VERSIONS,
    configs,
    flags,
    gang,
    make_experiment,
    make_spec,
    on_loopback,
)

GOLDEN = json.loads((Path(__file__).parent / "tf_config.json").read_text())
TRAINS = ("master", "worker", "train")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_job_gets_its_value(version: str, layout: str) -> None:
    assert configs(make_experiment(make_spec(version, layout))) == GOLDEN[layout][version]


def test_the_table_is_whole() -> None:
    assert {layout: tuple(versions) for layout, versions in GOLDEN.items()} == dict.fromkeys(LAYOUTS, VERSIONS)


def test_addresses_are_those_of_the_places() -> None:
    placed = on_loopback(make_experiment(make_spec("2.21.0", "chief: worker")))
    found = configs(placed)["worker.2"]
    assert found is not None
    assert found["cluster"] == {"worker": ["127.0.0.1:20001", "127.0.0.1:20002", "127.0.0.1:20003"]}


@pytest.mark.parametrize("version", ["latest", "latest-gpu", "nightly", "2.21.0", "1.4.0", "1.15", "1.13.0rc1-py3"])
def test_only_versions_before_1_4_get_an_environment(version: str) -> None:
    found = configs(make_experiment(make_spec(version, "chief: chief")))
    assert all(config is None or "environment" not in config for config in found.values())


def make_cluster(counts: tuple[int, int], chief: ChiefKey, *, evaluator: bool, version: str) -> Experiment:
    resources = Resources()
    ready = resources if evaluator else None
    cluster = Distributed(counts[0], counts[1], chief, resources, resources, resources, ready)
    run = tuple(f"echo {{{{{flag}}}}}" for flag in FLAGS)
    section = TensorFlow(version, tensorboard=TensorBoard(), distributed=cluster)
    return make_experiment(Spec("toaster", Train(run, framework="tensorflow", tensorflow=section)))


clusters = st.builds(
    make_cluster,
    st.tuples(st.integers(1, 12), st.integers(0, 12)),
    st.sampled_from(ChiefKey),
    evaluator=st.booleans(),
    version=st.sampled_from([*VERSIONS, "latest"]),
)
experiments = st.one_of(clusters, clusters.map(on_loopback))


def told(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """The TF_CONFIG of the jobs that have one."""
    return {name: config for name, config in configs(experiment).items() if config is not None}


@given(experiments)
def test_all_jobs_see_one_cluster(experiment: Experiment) -> None:
    found = told(experiment)
    seen = [config["cluster"] for name, config in found.items() if name != "evaluator"]
    assert all(cluster == seen[0] for cluster in seen)
    assert "evaluator" not in (seen[0] if seen else {})
    if "evaluator" in found:
        whole = found["evaluator"]["cluster"]
        assert whole == {**seen[0], "evaluator": whole["evaluator"]}
        assert len(whole["evaluator"]) == 1


@given(experiments)
def test_every_job_finds_itself(experiment: Experiment) -> None:
    own = job_addresses(experiment)
    tasks = []
    for name, config in told(experiment).items():
        task = config["task"]
        assert config["cluster"][task["type"]][task["index"]] == own[name]  # type: ignore[index]  # JSON: its shape is what is tested
        tasks.append((task["type"], task["index"]))
    assert len(set(tasks)) == len(tasks)


@given(experiments)
def test_a_cluster_holds_each_job_once_and_no_other(experiment: Experiment) -> None:
    own = job_addresses(experiment)
    assert len(set(own.values())) == len(own)
    found = told(experiment)
    members = [name for name in own if name != "tensorboard"]
    assert list(found) == (members if len(members) > 1 else [])
    for name, config in found.items():
        wanted = [own[member] for member in members if member != "evaluator" or name == "evaluator"]
        assert sorted(address for peers in config["cluster"].values() for address in peers) == sorted(wanted)


@given(experiments)
def test_there_is_one_chief_as_tensorflow_requires(experiment: Experiment) -> None:
    """What `tf.estimator.RunConfig` insists on."""
    for config in told(experiment).values():
        heads = [peers for key, peers in config["cluster"].items() if key in ("chief", "master")]
        assert [len(peers) for peers in heads] in ([1], [])
        assert heads or config["cluster"]["worker"], "without a chief, worker 0 is one"
        assert not ("master" in config["cluster"] and config["task"]["type"] == "evaluator")


@given(experiments)
def test_the_workers_are_counted_from_zero(experiment: Experiment) -> None:
    variables = {job.name: dict(job_variables(bind_job(experiment, job))) for job in gang(experiment)}
    workers = [name for name in variables if job_type(name) in TRAINS]
    assert [variables[name]["WORKER_INDEX"] for name in workers] == [str(index) for index in range(len(workers))]
    assert {found["TOTAL_WORKERS"] for found in variables.values()} == {str(len(workers))}
    assert all("WORKER_INDEX" not in found for name, found in variables.items() if name not in workers)
    deciding = [job.name for job in gang(experiment) if job.part is JobDuty.DECIDES]
    assert deciding == workers[:1]


@given(experiments)
def test_placeholders_agree_with_the_cluster(experiment: Experiment) -> None:
    own = job_addresses(experiment)
    for job in gang(experiment):
        if job.name == "tensorboard":
            continue
        found = flags(experiment, job)
        hosts = {kind: found[f"{kind}_hosts"].split(",") for kind in ("worker", "ps")}
        assert hosts["worker"] == [own[name] for name in own if job_type(name) in TRAINS]
        assert hosts["ps"] == ([own[name] for name in own if job_type(name) == "ps"] or [""])
        assert found["num_workers"] == str(len(hosts["worker"]))
        assert found["worker_index"] == dict(job_variables(bind_job(experiment, job))).get("WORKER_INDEX", "")
        if job.name != "evaluator":
            assert hosts[found["job_name"]][int(found["task_index"])] == own[job.name]
