"""TensorFlow's own parsers on the TF_CONFIG of every layout, and Keras with the callback that docs/metrics.md shows; in
one container of the real image.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import docker

from riseml.job_programs import read_program
from riseml.store.logs.report_lines import split_report
from tests.unit.frameworks.layouts import LAYOUTS, VERSIONS, configs, flags, gang, make_experiment, make_spec

IMAGE = "tensorflow/tensorflow:2.21.0"
PATIENCE = 300  # seconds
DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"

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

def train(module, snippet):
    os.mkdir("/tmp/riseml")
    open("/tmp/riseml/riseml.py", "w").write(module)
    sys.path.insert(0, "/tmp/riseml")
    os.environ["RISEML_JOB"] = "train"
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse", metrics=["accuracy"])
    found = {"model": model, "x": tf.ones([8, 1]), "y": tf.ones([8, 1])}
    exec(snippet, found)
    # Then the line of RiseML's official cifar10 example, with what Keras gives it there.
    exec("evaluation = model.evaluate(x, y, verbose=0)\\nriseml.report_result(accuracy=float(evaluation[1]))", found)

cases = json.load(sys.stdin)
train(cases["module"], cases["snippet"])
print(json.dumps({"configs": [read(one) for one in cases["configs"]], "flags": [flag(one) for one in cases["flags"]]}))
"""


class Answer(NamedTuple):
    """What the reader has printed."""

    found: dict[str, Any]  # what TensorFlow's parsers say
    reports: list[dict[str, float]]  # what Keras has reported


def test_every_layout_and_the_callback_for_keras(engine_url: str) -> None:
    cases = list(make_cases())
    placeholders = list(make_flags())
    assert len(cases) > 80
    snippet = re.search(r"A callback for Keras:\n\n```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert snippet is not None
    programs = {"module": read_program("reports"), "snippet": snippet[1]}
    answer, reports = ask(engine_url, {"configs": [one for _, one in cases], "flags": placeholders, **programs})
    of_epoch, result = reports
    assert (set(of_epoch), of_epoch["step"]) == ({"accuracy", "loss", "step"}, 0)
    assert set(result) == {"accuracy"}
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


def ask(url: str, cases: dict[str, Any]) -> Answer:
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
            return read_answer(api.logs(made["Id"], stdout=True, stderr=False).split(b"\n"))
        finally:
            api.remove_container(made["Id"], force=True, v=True)


def read_answer(lines: list[bytes]) -> Answer:
    """Return what the lines of the reader say; its own answer is the last one."""
    reports = [report for _, report in map(split_report, lines) if report is not None]
    return Answer(json.loads(lines[-2]), [json.loads(one.removeprefix(b"riseml.report ")) for one in reports])
