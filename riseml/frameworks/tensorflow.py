"""TensorFlow: master, workers, parameter servers, evaluator, tensorboard, and the TF_CONFIG that each of them reads.

For `worker: 3, ps: 1` and TensorFlow 2, the first worker beside the master gets

    {"cluster": {"chief": ["master:2222"], "worker": ["worker-1:2222", "worker-2:2222"], "ps": ["ps-1:2222"]},
     "task": {"type": "worker", "index": 0}}

The rules are those of `tf.estimator.RunConfig` and `tf.distribute.cluster_resolver.TFConfigClusterResolver`: indices
are zero-based; an evaluator is in no cluster but its own; TensorFlow 2 knows no `master` key, and TensorFlow 1 takes
none beside an evaluator; a single job gets no TF_CONFIG at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from riseml.frameworks.base import EVALUATOR_GRACE, WORKER_GRACE, Binding, Role, join_run_lines
from riseml.model import Environment, Plan
from riseml.names import JobName, job_name, job_type
from riseml.spec.config.types import ChiefKey, Distributed, Resources, TensorFlow, Train
from riseml.states import Part

MASTER = JobName("master")
EVALUATOR = JobName("evaluator")
TENSORBOARD = JobName("tensorboard")
TENSORBOARD_PORT = 6006

_TENSORBOARD_RESOURCES = Resources(cpus=0.1, mem=512, gpus=0)


class Tensorflow:
    """The plug-in for `framework: tensorflow`."""

    name = "tensorflow"

    def image(self, train: Train) -> str | None:
        return f"tensorflow/tensorflow:{_section(train).version}"

    def roles(self, train: Train) -> tuple[Role, ...]:
        section = _section(train)
        if section.distributed is None:
            roles = [Role(JobName("train"), Part.DECIDES, train.resources)]
        else:
            roles = _cluster_roles(section.distributed, train.finish_grace)
        if section.tensorboard:
            place = f'--host "${{RISEML_HOST:-0.0.0.0}}" --port "${{RISEML_PORT:-{TENSORBOARD_PORT}}}"'
            run = (f'exec tensorboard --logdir "$OUTPUT_DIR" {place}',)
            roles.append(Role(TENSORBOARD, Part.WATCHES, _TENSORBOARD_RESOURCES, run=run))
        return tuple(roles)

    def options(self, train: Train) -> Environment:
        section = _section(train)
        return (("chief", _chief(section.distributed).value), ("version", section.version))

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        workers = _workers(plan)
        variables = {"TOTAL_WORKERS": str(len(workers))}
        if job in workers:
            variables["WORKER_INDEX"] = str(workers.index(job))
        config = tf_config(plan, job, addresses)
        if config is not None:
            variables["TF_CONFIG"] = json.dumps(config)
        return Binding(variables, _placeholders(plan, job, addresses))

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        return join_run_lines(lines)


def tf_config(plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> dict[str, object] | None:
    """The TF_CONFIG of one job as a value, None when that job gets none."""
    members = _members(plan)
    if job not in members or len(members) < 2:
        return None
    options = dict(plan.options)
    cluster: dict[str, list[str]] = {}
    task: dict[str, object] = {}
    for name in members:
        if name == EVALUATOR and job != EVALUATOR:
            continue
        key = options["chief"] if name == MASTER else job_type(name)
        if name == job:
            task = {"type": key, "index": len(cluster.get(key, []))}
        cluster.setdefault(key, []).append(addresses[name])
    config: dict[str, object] = {"cluster": cluster, "task": task}
    if _before(options["version"], (1, 4)):
        config["environment"] = "cloud"  # its RunConfig treats every other value as a single machine
    return config


def _placeholders(plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> dict[str, str]:
    """The flags of `tf.compat.v1` scripts: there, the master is worker 0 and no other kind of job exists."""
    workers = _workers(plan)
    servers = tuple(name for name in _members(plan) if job_type(name) == "ps")
    peers = workers if job in workers else servers if job in servers else (job,)
    return {
        "job_name": "worker" if job in workers else job_type(job),
        "task_index": str(peers.index(job)),
        "worker_hosts": ",".join(addresses[name] for name in workers),
        "ps_hosts": ",".join(addresses[name] for name in servers),
        "worker_index": str(workers.index(job)) if job in workers else "",
        "num_workers": str(len(workers)),
    }


def _chief(section: Distributed | None) -> ChiefKey:
    if section is None:
        return ChiefKey.CHIEF
    if section.chief is ChiefKey.MASTER and section.evaluator_resources is not None:
        return ChiefKey.CHIEF  # RunConfig refuses an evaluator beside a `master`; both are known from 1.4 on
    return section.chief


def _cluster_roles(section: Distributed, finish_grace: float | None) -> list[Role]:
    grace = WORKER_GRACE if finish_grace is None else finish_grace
    roles: list[Role] = []
    if section.chief is ChiefKey.WORKER:
        roles.append(Role(job_name("worker", 1), Part.DECIDES, section.master_resources))
        helpers = range(2, section.workers + 1)
    else:
        roles.append(Role(MASTER, Part.DECIDES, section.master_resources))
        helpers = range(1, section.workers)
    roles += [Role(job_name("worker", index), Part.HELPS, section.worker_resources, grace) for index in helpers]
    roles += [Role(job_name("ps", index), Part.SERVES, section.ps_resources) for index in range(1, section.ps + 1)]
    if section.evaluator_resources is not None:
        last = EVALUATOR_GRACE if finish_grace is None else finish_grace
        roles.append(Role(EVALUATOR, Part.HELPS, section.evaluator_resources, last))
    return roles


def _members(plan: Plan) -> tuple[JobName, ...]:
    """The jobs that take part in the cluster, in the plan's order."""
    return tuple(job.name for job in plan.jobs if job_type(job.name) in ("master", "worker", "ps", "evaluator"))


def _workers(plan: Plan) -> tuple[JobName, ...]:
    """The jobs that share the training data; the master counts as worker 0, and so does a single job."""
    return tuple(job.name for job in plan.jobs if job_type(job.name) in ("master", "worker", "train"))


def _section(train: Train) -> TensorFlow:
    return train.tensorflow or TensorFlow()


def _before(version: str, bound: tuple[int, int]) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) < bound
