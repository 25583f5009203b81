"""The plug-in for TensorFlow: master, workers, parameter servers, evaluator, tensorboard, and the TF_CONFIG of a job.

For `worker: 3, ps: 1` and TensorFlow 2, the job `worker.1` gets

    {"cluster": {"chief": ["master:2222"], "worker": ["worker-1:2222", "worker-2:2222"], "ps": ["ps-1:2222"]},
     "task": {"type": "worker", "index": 0}}

The rules come from `tf.estimator.RunConfig` and `tf.distribute.cluster_resolver.TFConfigClusterResolver`:

- indices are zero-based;
- the evaluator is missing in the clusters of the other jobs, and only its own cluster has it;
- TensorFlow 2 has no `master` key, and TensorFlow 1 refuses a `master` beside an evaluator;
- a single job has no TF_CONFIG.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName, job_name, job_type
from riseml.base.states import JobDuty
from riseml.frameworks.base import EVALUATOR_GRACE, WORKER_GRACE, BaseImage, Binding, FrameworkJob, join_run_lines
from riseml.frameworks.tensorboard import make_tensorboard_role, tensorboard_options
from riseml.spec.config.types import ChiefKey, Distributed, TensorFlow, Train

if TYPE_CHECKING:
    from riseml.model import Environment, Plan

MASTER = JobName("master")
EVALUATOR = JobName("evaluator")


class Tensorflow:
    """The plug-in for `framework: tensorflow`."""

    name = "tensorflow"

    def image(self, train: Train) -> BaseImage:
        return BaseImage(f"tensorflow/tensorflow:{_section_of(train).version}")

    def roles(self, train: Train) -> tuple[FrameworkJob, ...]:
        section = _section_of(train)
        if section.distributed is None:
            roles = [FrameworkJob(JobName("train"), JobDuty.DECIDES, train.resources)]
        else:
            roles = _cluster_roles(section.distributed, train.finish_grace)
        if section.tensorboard:
            roles.append(make_tensorboard_role(section.tensorboard))
        return tuple(roles)

    def options(self, train: Train) -> Environment:
        section = _section_of(train)
        chief = _choose_chief_key(section.distributed).value
        return ("chief", chief), ("version", section.version), *tensorboard_options(section.tensorboard)

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        workers = _find_workers(plan)
        variables = {"TOTAL_WORKERS": str(len(workers))}
        if job in workers:
            variables["WORKER_INDEX"] = str(workers.index(job))
        config = make_tf_config(plan, job, addresses)
        if config is not None:
            variables["TF_CONFIG"] = json.dumps(config)
        return Binding(variables, _make_placeholders(plan, job, addresses))

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        return join_run_lines(lines)


def make_tf_config(plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> dict[str, object] | None:
    """Return the TF_CONFIG of one job as a value; None when the job has none."""
    members = _find_members(plan)
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
    if _is_before(options["version"], (1, 4)):
        config["environment"] = "cloud"  # its RunConfig takes every other value for a single machine
    return config


def _make_placeholders(plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> dict[str, str]:
    """Return the flags of `tf.compat.v1` scripts, for which the master is worker 0, and only workers and ps exist."""
    workers = _find_workers(plan)
    servers = tuple(name for name in _find_members(plan) if job_type(name) == "ps")
    peers = workers if job in workers else servers if job in servers else (job,)
    return {
        "job_name": "worker" if job in workers else job_type(job),
        "task_index": str(peers.index(job)),
        "worker_hosts": ",".join(addresses[name] for name in workers),
        "ps_hosts": ",".join(addresses[name] for name in servers),
        "worker_index": str(workers.index(job)) if job in workers else "",
        "num_workers": str(len(workers)),
    }


def _choose_chief_key(section: Distributed | None) -> ChiefKey:
    if section is None:
        return ChiefKey.CHIEF
    if section.chief is ChiefKey.MASTER and section.evaluator_resources is not None:
        return ChiefKey.CHIEF  # RunConfig refuses an evaluator beside a `master`; both keys exist from 1.4 on
    return section.chief


def _cluster_roles(section: Distributed, finish_grace: float | None) -> list[FrameworkJob]:
    grace = WORKER_GRACE if finish_grace is None else finish_grace
    roles: list[FrameworkJob] = []
    if section.chief is ChiefKey.WORKER:
        roles.append(FrameworkJob(job_name("worker", 1), JobDuty.DECIDES, section.master_resources))
        helpers = range(2, section.workers + 1)
    else:
        roles.append(FrameworkJob(MASTER, JobDuty.DECIDES, section.master_resources))
        helpers = range(1, section.workers)
    roles += [
        FrameworkJob(job_name("worker", index), JobDuty.HELPS, section.worker_resources, grace) for index in helpers
    ]
    roles += [
        FrameworkJob(job_name("ps", index), JobDuty.SERVES, section.ps_resources) for index in range(1, section.ps + 1)
    ]
    if section.evaluator_resources is not None:
        last = EVALUATOR_GRACE if finish_grace is None else finish_grace
        roles.append(FrameworkJob(EVALUATOR, JobDuty.HELPS, section.evaluator_resources, last))
    return roles


def _find_members(plan: Plan) -> tuple[JobName, ...]:
    """Return the jobs of the cluster, in the order of the plan."""
    return tuple(job.name for job in plan.jobs if job_type(job.name) in ("master", "worker", "ps", "evaluator"))


def _find_workers(plan: Plan) -> tuple[JobName, ...]:
    """Return the jobs that share the training data; the master or a single job is worker 0."""
    return tuple(job.name for job in plan.jobs if job_type(job.name) in ("master", "worker", "train"))


def _section_of(train: Train) -> TensorFlow:
    return train.tensorflow or TensorFlow()


def _is_before(version: str, bound: tuple[int, int]) -> bool:
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) < bound
