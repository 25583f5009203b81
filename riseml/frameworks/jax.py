"""The plug-in for JAX: master and workers, and the variables that `jax.distributed.initialize()` reads.

For `worker: 3`, the job `worker.1` gets

    JAX_COORDINATOR_ADDRESS=master:2222 JAX_COORDINATOR_BIND_ADDRESS=master:2222 JAX_NUM_PROCESSES=3 JAX_PROCESS_ID=1
    SLURM_JOB_ID=1 SLURM_STEP_NODELIST=master SLURM_NTASKS=3 SLURM_PROCID=1 SLURM_LOCALID=0

JAX reads the address from its own variables, but the number and the rank of its processes only from a cluster that it
knows. So the second line is that of such a cluster; JAX_NUM_PROCESSES and JAX_PROCESS_ID are for scripts that pass
them on.

A job that is alone has none of them: it is one process, as on the user's own machine.

With `processes: 2`, `riseml.job_programs.rank_launcher` starts two processes in each job, each with a rank of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName, split_address
from riseml.frameworks.base import BaseImage, Binding, FrameworkJob, join_run_lines, make_rank_command
from riseml.frameworks.process_group import (
    count_written_processes,
    find_job,
    is_alone,
    limit_threads,
    list_group_roles,
    make_group_options,
    make_placeholders,
)
from riseml.job_programs import launch_ranks, write_program
from riseml.spec.config.types import JAX, Train

if TYPE_CHECKING:
    from riseml.model import Environment, Plan, PlannedJob

_PYTHON = "python:3.12-slim"


class Jax:
    """The plug-in for `framework: jax`."""

    name = "jax"

    def image(self, train: Train) -> BaseImage:
        version = _section_of(train).version
        variant = "cuda12" if any(role.resources.gpus for role in self.roles(train)) else "cpu"
        return BaseImage(_PYTHON, (f'pip install "jax[{variant}]=={version}"',))

    def roles(self, train: Train) -> tuple[FrameworkJob, ...]:
        return list_group_roles(train, _section_of(train).distributed)

    def options(self, train: Train) -> Environment:
        return make_group_options(_section_of(train).distributed)

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        index, planned = find_job(plan, job)
        placeholders = make_placeholders([member.name for member in plan.jobs], job, addresses)
        counts = {"WORKER_INDEX": str(index), "TOTAL_WORKERS": str(len(plan.jobs))}
        if is_alone(plan):
            return Binding(counts, placeholders)
        processes = count_written_processes(plan) or 1
        master = addresses[plan.jobs[0].name]
        size = str(processes * len(plan.jobs))
        variables = {
            # Without the second one the coordinator listens on every network of its machine.
            **{"JAX_COORDINATOR_ADDRESS": master, "JAX_COORDINATOR_BIND_ADDRESS": master, "JAX_NUM_PROCESSES": size},
            # This service would catch SIGTERM and end the process ten seconds later.
            "JAX_ENABLE_PREEMPTION_SERVICE": "false",
            **{"SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": split_address(master)[0], "SLURM_NTASKS": size},
            **(_make_rank_variables(planned, index, processes, 0) if processes == 1 else {}),
            **counts,
        }
        return Binding(variables, placeholders)

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        """Return the lines of `run`, in one process or in several that a launcher starts.

        Before them the script of a group writes a module that Python imports when it starts: without it a process that
        raises an exception waits for all others for five minutes before it ends.
        """
        index, planned = find_job(plan, job)
        processes = count_written_processes(plan) or 1
        script = join_run_lines(lines)
        if is_alone(plan):
            return limit_threads(planned, processes, script)
        if processes > 1:
            ranks = [_make_rank_variables(planned, index, processes, local) for local in range(processes)]
            script = launch_ranks(make_rank_command(plan, planned, lines), index * processes, ranks)
        hook = write_program("jax_exit", ".riseml/sitecustomize.py")
        path = 'export PYTHONPATH="$PWD/.riseml${PYTHONPATH:+:$PYTHONPATH}"'
        return limit_threads(planned, processes, f"{hook}\n{path}\n{script}")


def _make_rank_variables(planned: PlannedJob, index: int, processes: int, local: int) -> dict[str, str]:
    """Return the variables that differ between the processes of a job: the rank, and the share of the GPUs."""
    rank = str(index * processes + local)
    gpus = planned.resources.gpus
    variables = {"JAX_PROCESS_ID": rank, "SLURM_PROCID": rank, "SLURM_LOCALID": str(local)}
    if gpus:
        share = range(local * gpus // processes, max((local + 1) * gpus // processes, local * gpus // processes + 1))
        variables["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, share))
    return variables


def _section_of(train: Train) -> JAX:
    return train.jax or JAX()
