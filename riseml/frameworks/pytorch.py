"""The plug-in for PyTorch: master and workers, and the variables by which their processes find each other.

For `worker: 3, processes: 2`, the job `worker.1` gets

    MASTER_ADDR=master MASTER_PORT=2222 WORLD_SIZE=3 RANK=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=1
    PET_NNODES=3 PET_NODE_RANK=1 PET_NPROC_PER_NODE=2 PET_MASTER_ADDR=master PET_MASTER_PORT=2222

The first line is for `python train.py`, one process in each container: `torch.distributed.init_process_group()` reads
MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK (its `env://` method). The second line is for `torchrun train.py`: its
options, which it reads from variables that begin with PET_. `torchrun` gives its processes RANK, LOCAL_RANK and
WORLD_SIZE of their own, so that both sets together do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from riseml.frameworks.base import WORKER_GRACE, Binding, Role, join_run_lines
from riseml.model import Environment, Plan, PlannedJob
from riseml.names import JobName, job_name
from riseml.spec.config.types import PyTorch, Train
from riseml.states import Part

MASTER = JobName("master")
_PROCESSES = "processes"


class Pytorch:
    """The plug-in for `framework: pytorch`."""

    name = "pytorch"

    def image(self, train: Train) -> str | None:
        return f"pytorch/pytorch:{_section_of(train).version}"

    def roles(self, train: Train) -> tuple[Role, ...]:
        group = _section_of(train).distributed
        if group is None:
            return (Role(JobName("train"), Part.DECIDES, train.resources),)
        grace = WORKER_GRACE if train.finish_grace is None else train.finish_grace
        master = Role(MASTER, Part.DECIDES, group.master_resources)
        workers = range(1, group.workers)
        return master, *(Role(job_name("worker", at), Part.HELPS, group.worker_resources, grace) for at in workers)

    def options(self, train: Train) -> Environment:
        group = _section_of(train).distributed
        return () if group is None or group.processes is None else ((_PROCESSES, str(group.processes)),)

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        names = [one.name for one in plan.jobs]
        rank, nodes = str(names.index(job)), str(len(names))
        host, _, port = addresses[names[0]].rpartition(":")
        processes = _count_processes(plan, plan.jobs[names.index(job)])
        for_python = {"WORLD_SIZE": nodes, "RANK": rank, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": rank}
        for_torchrun = {"PET_NNODES": nodes, "PET_NODE_RANK": rank, "PET_NPROC_PER_NODE": str(processes)}
        variables = {
            **{"MASTER_ADDR": host, "MASTER_PORT": port, **for_python},
            **{"PET_MASTER_ADDR": host, "PET_MASTER_PORT": port, **for_torchrun},
            **{"WORKER_INDEX": rank, "TOTAL_WORKERS": nodes},
        }
        return Binding(variables, _make_placeholders(names, job, addresses))

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        """Return the lines of `run`, with OMP_NUM_THREADS unless the user's `env` sets it.

        PyTorch counts the cores of the machine, not those of the job: with three jobs on two cores, a training step
        takes six times as long.
        """
        planned = next(one for one in plan.jobs if one.name == job)
        threads = max(1, int(planned.resources.cpus) // _count_processes(plan, planned))
        return f"export OMP_NUM_THREADS=${{OMP_NUM_THREADS:-{threads}}}\n{join_run_lines(lines)}"


def _count_processes(plan: Plan, planned: PlannedJob) -> int:
    """Return how many processes `torchrun` starts in a job: as the file says, else one for each GPU."""
    written = dict(plan.options).get(_PROCESSES)
    return max(1, planned.resources.gpus) if written is None else int(written)


def _make_placeholders(names: Sequence[JobName], job: JobName, addresses: Mapping[JobName, str]) -> dict[str, str]:
    rank = str(names.index(job))
    return {
        "job_name": "worker",
        "task_index": rank,
        "worker_hosts": ",".join(addresses[name] for name in names),
        "ps_hosts": "",
        "worker_index": rank,
        "num_workers": str(len(names)),
    }


def _section_of(train: Train) -> PyTorch:
    return train.pytorch or PyTorch()
