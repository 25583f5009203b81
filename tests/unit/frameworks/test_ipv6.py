"""Jobs on hosts with IPv6 addresses: `host:port` has brackets, and a host alone has none."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from riseml.frameworks.roles import is_waiting_for
from riseml.model import Experiment
from riseml.planning.launch import bind_job, find_tf_config, job_addresses, job_command, job_variables
from riseml.spec.config.loader import load_config
from tests.unit.frameworks.layouts import gang, make_experiment

VARIABLES = {
    "framework: pytorch, pytorch: {distributed: {worker: 2}}": {
        **{"MASTER_ADDR": "fd00::1", "MASTER_PORT": "2001", "PET_MASTER_ADDR": "fd00::1", "PET_MASTER_PORT": "2001"},
    },
    "framework: jax, jax: {distributed: {worker: 2}}": {
        **{"JAX_COORDINATOR_ADDRESS": "[fd00::1]:2001", "SLURM_STEP_NODELIST": "fd00::1"},
    },
    "framework: tensorflow, tensorflow: {horovod: {workers: 2}}": {
        **{"HOROVOD_GLOO_RENDEZVOUS_ADDR": "fd00::1", "HOROVOD_GLOO_RENDEZVOUS_PORT": "2001"},
    },
    "image: a, roles: {learner: {}, actor: {after: {learner: 6379}}}": {
        **{"LEARNER_ADDRESS": "[fd00::1]:2001", "LEARNER_HOST": "fd00::1", "LEARNER_PORT": "2001"},
        **{"LEARNER_ADDRESSES": "[fd00::1]:2001", "ROLE_HOST": "fd00::2"},
    },
}


def make_placed(section: str) -> Experiment:
    experiment = make_experiment(load_config(f"project: x\ntrain: {{{section}, run: c}}\n"))
    others = [job for job in experiment.jobs if job not in gang(experiment)]
    placed = [replace(job, address=f"fd00::{at}", port=2000 + at) for at, job in enumerate(gang(experiment), 1)]
    return replace(experiment, jobs=(*others, *placed))


@pytest.mark.parametrize("section", VARIABLES)
def test_each_framework_gets_the_form_that_it_reads(section: str) -> None:
    experiment = make_placed(section)
    found = dict(job_variables(bind_job(experiment, gang(experiment)[1])))
    assert {name: found[name] for name in VARIABLES[section]} == VARIABLES[section]


def test_the_cluster_of_tensorflow_has_brackets() -> None:
    experiment = make_placed("framework: tensorflow, tensorflow: {distributed: {worker: 2}}")
    config = find_tf_config(experiment, gang(experiment)[1])
    assert config is not None
    assert config["cluster"] == {"chief": ["[fd00::1]:2001"], "worker": ["[fd00::2]:2002"]}


@pytest.mark.parametrize(("after", "port"), [("[learner]", "2001"), ("{learner: 6379}", "6379")])
def test_a_role_waits_for_the_host_without_brackets(after: str, port: str) -> None:
    experiment = make_placed(f"image: a, roles: {{learner: {{}}, actor: {{after: {after}}}}}")
    learner, actor = gang(experiment)
    bound = bind_job(experiment, actor)
    (line,) = [line for line in job_command(bound)[-1].splitlines() if line.startswith("for riseml_peer")]
    script = f'riseml_wait() {{ echo "riseml: waiting until $3 answers at $1:$2"; }}\n{line}'
    variables = {**dict(job_variables(bound)), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-ec", script], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == f"riseml: waiting until learner answers at fd00::1:{port}\n"
    address = job_addresses(experiment)[learner.name]
    assert is_waiting_for(experiment.plan, actor.name, learner.name, address, done.stdout.rstrip())
