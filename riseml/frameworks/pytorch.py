"""The plug-in for PyTorch: master and workers, and the variables by which their processes find each other.

For `worker: 3, processes: 2`, the job `worker.1` gets

    MASTER_ADDR=master MASTER_PORT=2222 WORLD_SIZE=3 RANK=1 NODE_RANK=1
    PET_NNODES=3 PET_NODE_RANK=1 PET_NPROC_PER_NODE=2 PET_MASTER_ADDR=master PET_MASTER_PORT=2222

The first line is for `python train.py`, one process in each container: `torch.distributed.init_process_group()` reads
MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK (its `env://` method). The second line is for `torchrun train.py`: its
options, which it reads from variables that begin with PET_. `torchrun` gives its processes RANK, LOCAL_RANK and
WORLD_SIZE of their own, so that both sets together do no harm.

LOCAL_RANK=0 and LOCAL_WORLD_SIZE=1 are only for jobs of one process. Lightning takes LOCAL_RANK as the sign that
something else starts the other processes of the machine, and waits for them; transformers then uses one GPU.

A job that is alone has no variable of the first line, because scripts take RANK as the sign of a launcher. For
`torchrun` it has the number of processes, and its own port: two jobs of one machine may not share the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName, split_address
from riseml.frameworks.base import BaseImage, Binding, FrameworkJob, join_run_lines
from riseml.frameworks.process_group import (
    count_written_processes,
    find_job,
    is_alone,
    limit_threads,
    list_group_roles,
    make_group_options,
    make_placeholders,
)
from riseml.spec.config.types import PyTorch, Train

if TYPE_CHECKING:
    from riseml.model import Environment, Plan, PlannedJob


_RECORDER = """\
: "${TORCH_NCCL_TRACE_BUFFER_SIZE:=2000}" "${TORCH_NCCL_DEBUG_INFO_TEMP_FILE:=$OUTPUT_DIR/nccl_trace_rank_}"
export TORCH_FR_BUFFER_SIZE="${TORCH_FR_BUFFER_SIZE:-$TORCH_NCCL_TRACE_BUFFER_SIZE}"
export TORCH_NCCL_TRACE_BUFFER_SIZE="$TORCH_FR_BUFFER_SIZE"
export TORCH_FR_DUMP_TEMP_FILE="${TORCH_FR_DUMP_TEMP_FILE:-$TORCH_NCCL_DEBUG_INFO_TEMP_FILE}"
export TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$TORCH_FR_DUMP_TEMP_FILE"
export TORCH_NCCL_DUMP_ON_TIMEOUT="${TORCH_NCCL_DUMP_ON_TIMEOUT:-1}\""""
"""NCCL's flight recorder: when a collective times out, each rank writes its last 2,000 calls into the output, where
`torchfrtrace` reads them. Each variable has a second name, of earlier versions. What `env` sets stays."""


class Pytorch:
    """The plug-in for `framework: pytorch`."""

    name = "pytorch"

    def image(self, train: Train) -> BaseImage:
        return BaseImage(f"pytorch/pytorch:{_section_of(train).version}")

    def roles(self, train: Train) -> tuple[FrameworkJob, ...]:
        return list_group_roles(train, _section_of(train).distributed)

    def options(self, train: Train) -> Environment:
        return make_group_options(_section_of(train).distributed)

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        index, planned = find_job(plan, job)
        rank = str(index)
        nodes = str(len(plan.jobs))
        host, port = split_address(addresses[plan.jobs[0].name])
        for_python = {"WORLD_SIZE": nodes, "RANK": rank, "NODE_RANK": rank}
        processes = _count_processes(plan, planned)
        if processes == 1:
            for_python |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        for_torchrun = {"PET_NNODES": nodes, "PET_NODE_RANK": rank, "PET_NPROC_PER_NODE": str(processes)}
        variables = {
            **({} if is_alone(plan) else {"MASTER_ADDR": host, "MASTER_PORT": port, **for_python}),
            **{"PET_MASTER_ADDR": host, "PET_MASTER_PORT": port, **for_torchrun},
            **{"WORKER_INDEX": rank, "TOTAL_WORKERS": nodes},
        }
        return Binding(variables, make_placeholders([member.name for member in plan.jobs], job, addresses))

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        _, planned = find_job(plan, job)
        script = limit_threads(planned, _count_processes(plan, planned), join_run_lines(lines))
        return script if is_alone(plan) else f"{_RECORDER}\n{script}"


def _count_processes(plan: Plan, planned: PlannedJob) -> int:
    """Return how many processes `torchrun` starts in a job: as the file says, else one for each GPU."""
    return count_written_processes(plan) or max(1, planned.resources.gpus)


def _section_of(train: Train) -> PyTorch:
    return train.pytorch or PyTorch()
