"""What the plug-ins of PyTorch and JAX share: the jobs of a process group, their placeholders and threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName, job_name
from riseml.base.states import JobDuty
from riseml.frameworks.base import WORKER_GRACE, FrameworkJob
from riseml.spec.config.types import ProcessGroup, Train

if TYPE_CHECKING:
    from riseml.model import Environment, Plan, PlannedJob

MASTER = JobName("master")
_PROCESSES = "processes"


def list_group_roles(train: Train, group: ProcessGroup | None) -> tuple[FrameworkJob, ...]:
    """Return the master, which decides, and the workers; without a group the one job `train`."""
    if group is None:
        return (FrameworkJob(JobName("train"), JobDuty.DECIDES, train.resources),)
    grace = WORKER_GRACE if train.finish_grace is None else train.finish_grace
    master = FrameworkJob(MASTER, JobDuty.DECIDES, group.master_resources)
    workers = range(1, group.workers)
    return master, *(
        FrameworkJob(job_name("worker", at), JobDuty.HELPS, group.worker_resources, grace) for at in workers
    )


def make_group_options(group: ProcessGroup | None) -> Environment:
    """Return what `count_written_processes` reads later."""
    return () if group is None or group.processes is None else ((_PROCESSES, str(group.processes)),)


def count_written_processes(plan: Plan) -> int | None:
    """Return how many processes each job has according to the file; None when the file does not say."""
    written = dict(plan.options).get(_PROCESSES)
    return None if written is None else int(written)


def is_alone(plan: Plan) -> bool:
    """Return True for one job without a process group: a file without `distributed`, or with one process in one job.

    Scripts take RANK and its like as the sign that a launcher has started several processes.
    """
    first, *followers = plan.jobs
    return not followers and (first.name != MASTER or count_written_processes(plan) == 1)


def find_job(plan: Plan, job: JobName) -> tuple[int, PlannedJob]:
    """Return the index of a job among the jobs of the plan, and the job."""
    return next((at, planned) for at, planned in enumerate(plan.jobs) if planned.name == job)


def make_placeholders(workers: Sequence[JobName], job: JobName, addresses: Mapping[JobName, str]) -> dict[str, str]:
    """Return the built-in placeholders of one job, where all jobs that train are equal."""
    index = str(workers.index(job)) if job in workers else ""
    return {
        "job_name": "worker" if job in workers else job,
        "task_index": index or "0",
        "worker_hosts": ",".join(addresses[name] for name in workers),
        "ps_hosts": "",
        "worker_index": index,
        "num_workers": str(len(workers)),
    }


def limit_threads(planned: PlannedJob, processes: int, script: str) -> str:
    """Return a script with OMP_NUM_THREADS, unless the user's `env` sets it.

    Libraries count the cores of the machine, not those of the job: with three jobs of PyTorch on two cores, a training
    step takes six times as long.
    """
    threads = max(1, int(planned.resources.cpus) // processes)
    return f"export OMP_NUM_THREADS=${{OMP_NUM_THREADS:-{threads}}}\n{script}"
