"""TensorFlow's own parsers on the TF_CONFIG of every layout, in one container of the real image."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import docker

from tests.unit.frameworks.layouts import LAYOUTS, VERSIONS, configs, flags, gang, make_experiment, make_spec

IMAGE = "tensorflow/tensorflow:2.21.0"
PATIENCE = 300  # seconds

READER = """
import json, os, sys
import tensorflow as tf
from tensorflow.python.distribute import multi_worker_util
from tensorflow.python.training import server_lib

def read(config):
    os.environ["TF_CONFIG"] = json.dumps(config)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    spec, kind, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    old = tf.compat.v1.train.ClusterSpec(config["cluster"])
    found = {
        "cluster": spec.as_dict(),
        "old": old.as_dict(),
        "type": kind,
        "index": index,
        "address": old.task_address(kind, index),
        "master": resolver.master(),
        "server": serve(old, kind, index),
    }
    if "master" not in config["cluster"]:
        multi_worker_util._validate_cluster_spec(spec, kind, index)
        found["chief"] = multi_worker_util.is_chief(spec, kind, index)
        if kind != "ps":
            found["workers"] = multi_worker_util.worker_count(spec, kind)
    return found

def serve(spec, kind, index):
    made = server_lib._make_server_def(spec, kind, index, None, None)
    return [made.job_name, made.task_index, sorted(job.name for job in made.cluster.job)]

def flag(found):
    hosts = {kind: found[kind + "_hosts"].split(",") for kind in ("worker", "ps") if found[kind + "_hosts"]}
    spec = tf.compat.v1.train.ClusterSpec(hosts)
    kind, index = found["job_name"], int(found["task_index"])
    return [spec.as_dict(), serve(spec, kind, index), spec.task_address(kind, index)]

cases = json.load(sys.stdin)
print(json.dumps({"configs": [read(one) for one in cases["configs"]], "flags": [flag(one) for one in cases["flags"]]}))
"""


def test_every_layout(engine_url: str) -> None:
    cases = list(make_cases())
    placeholders = list(make_flags())
    assert len(cases) > 80
    answer = ask(engine_url, {"configs": [config for _, config in cases], "flags": placeholders})
    for (name, config), found in zip(cases, answer["configs"], strict=True):
        assert found == expect(config), name
    for sent, found in zip(placeholders, answer["flags"], strict=True):
        hosts = {kind: sent[f"{kind}_hosts"].split(",") for kind in ("worker", "ps") if sent[f"{kind}_hosts"]}
        kind, index = sent["job_name"], int(sent["task_index"])
        assert found == [hosts, [kind, index, sorted(hosts)], hosts[kind][index]]


def make_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    for version in VERSIONS:
        for layout in LAYOUTS:
            for job, config in configs(make_experiment(make_spec(version, layout))).items():
                if config is not None:
                    yield f"{version}, {layout}: {job}", config


def make_flags() -> Iterator[dict[str, str]]:
    for layout in LAYOUTS:
        experiment = make_experiment(make_spec("1.12.0", layout))
        yield from (flags(experiment, job) for job in gang(experiment) if job.name not in ("evaluator", "tensorboard"))


def expect(config: dict[str, Any]) -> dict[str, Any]:
    """Return what TensorFlow must understand."""
    cluster, kind, index = config["cluster"], config["task"]["type"], config["task"]["index"]
    address = cluster[kind][index]
    alone = sum(map(len, cluster.values())) == 1
    found = {
        "cluster": cluster,
        "old": cluster,
        "type": kind,
        "index": index,
        "address": address,
        "master": "" if alone else address,
        "server": [kind, index, sorted(cluster)],
    }
    if "master" in cluster:
        return found  # TensorFlow 1 alone knows it
    chief = kind in ("chief", "evaluator") or (kind == "worker" and index == 0 and "chief" not in cluster)
    if kind == "ps":
        return {**found, "chief": chief}
    workers = 1 if kind == "evaluator" else sum(len(cluster.get(key, ())) for key in ("chief", "worker"))
    return {**found, "chief": chief, "workers": workers}


def ask(url: str, cases: dict[str, Any]) -> Any:
    """Return what the reader prints for these cases, and remove its container."""
    with docker.APIClient(base_url=url, version="auto", timeout=PATIENCE) as api:
        made = api.create_container(
            IMAGE,
            ["python", "-c", READER],
            stdin_open=True,
            labels={"riseml-test": "1"},
            environment={"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
            host_config=api.create_host_config(network_mode="none"),
        )
        try:
            stdin = api.attach_socket(made["Id"], {"stdin": 1, "stream": 1})
            with closing(stdin._sock) as connection, closing(stdin):
                api.start(made["Id"])
                connection.sendall(json.dumps(cases).encode())
                connection.shutdown(socket.SHUT_WR)
            code = api.wait(made["Id"], timeout=PATIENCE)["StatusCode"]
            assert code == 0, api.logs(made["Id"], stdout=False, stderr=True, tail=30).decode()
            return json.loads(api.logs(made["Id"], stdout=True, stderr=False))
        finally:
            api.remove_container(made["Id"], force=True, v=True)
