"""The layouts of a TensorFlow cluster, from riseml.yml to the environment of each job."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import UTC, datetime

from riseml.base.states import JobDuty
from riseml.model import Experiment, Job, Owner
from riseml.planning.grid import grid_points
from riseml.planning.image import Manifest
from riseml.planning.launch import bind_job, find_tf_config, job_command, job_lines, job_variables
from riseml.planning.plan import first_jobs, make_plan
from riseml.spec.config.loader import Overrides, load_config
from riseml.spec.config.types import Spec
from riseml.spec.scalars.placeholders import BUILT_IN_PLACEHOLDERS

START = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
VERSIONS = ("1.2.1-gpu", "1.12.0", "2.21.0")
LAYOUTS = {
    "master, workers and ps": "{worker: 3, ps: 2}",
    "master and ps": "{worker: 1, ps: 1}",
    "master and workers": "{worker: 2}",
    "with an evaluator": "{worker: 2, ps: 1, evaluator: true}",
    "master and evaluator": "{worker: 1, evaluator: true}",
    "chief: worker": "{worker: 3, chief: worker}",
    "chief: worker with ps and evaluator": "{worker: 2, ps: 1, evaluator: true, chief: worker}",
    "chief: master": "{worker: 2, ps: 1, chief: master}",
    "chief: chief": "{worker: 2, ps: 1, chief: chief}",
    "one worker": "{worker: 1}",
    "single": "false",
}
FLAGS = tuple(sorted(BUILT_IN_PLACEHOLDERS - {"data_dir", "output_dir"}))


def make_spec(version: str, layout: str) -> Spec:
    """The spec of one layout; `run` prints every built-in placeholder, one a line."""
    run = json.dumps([f"echo {{{{{flag}}}}}" for flag in FLAGS])
    text = f"""
project: toaster
train:
  framework: tensorflow
  tensorflow: {{version: "{version}", tensorboard: true, distributed: {LAYOUTS[layout]}}}
  resources: {{cpus: 1, mem: 1GiB}}
  run: {run}
"""
    return load_config(text, "riseml.yml", Overrides())


def make_experiment(spec: Spec) -> Experiment:
    """Its record before it has a place."""
    plan = make_plan(spec, grid_points(spec.train)[0], Manifest())
    return Experiment(4, Owner("paul", 1000, 1000), 4, plan.project, plan, first_jobs(plan), START)


def on_loopback(experiment: Experiment) -> Experiment:
    """The same, placed where all jobs share one address and each has a port of its own."""
    jobs = tuple(replace(job, address="127.0.0.1", port=20000 + at) for at, job in enumerate(experiment.jobs))
    return replace(experiment, jobs=jobs)


def gang(experiment: Experiment) -> list[Job]:
    """Its jobs without the build."""
    return [job for job in experiment.jobs if job.part is not JobDuty.PREPARES]


def configs(experiment: Experiment) -> dict[str, dict[str, object] | None]:
    """The TF_CONFIG of every job."""
    return {job.name: find_tf_config(experiment, job) for job in gang(experiment)}


def flags(experiment: Experiment, job: Job) -> dict[str, str]:
    """What the placeholders of one job were replaced by; only of jobs that run the user's lines."""
    shown = job_lines(bind_job(experiment, job))
    return {flag: line.removeprefix("echo ").strip("'") for flag, line in zip(FLAGS, shown, strict=True)}


def list_ranks(script: str) -> list[dict[str, str]]:
    """What the launcher in a script adds to the environment of each of its processes: it is in the last word.

    The word before it is the launcher itself, 23,000 characters, which `shlex` would read one by one.
    """
    (order,) = shlex.split(script[script.rindex(" '{") :])
    return [dict(rank) for rank in json.loads(order)["ranks"]]


def variables(experiment: Experiment, name: str) -> dict[str, str]:
    (job,) = [one for one in gang(experiment) if one.name == name]
    return dict(job_variables(bind_job(experiment, job)))


def script(experiment: Experiment, name: str) -> str:
    (job,) = [one for one in gang(experiment) if one.name == name]
    return job_command(bind_job(experiment, job))[-1]
