"""The plug-in for Horovod, with TensorFlow or PyTorch: containers times processes, each with a rank of its own.

For `workers: 2, processes: 2`, the second process of the job `worker.2` gets

    HOROVOD_RANK=3 HOROVOD_SIZE=4 HOROVOD_LOCAL_RANK=1 HOROVOD_LOCAL_SIZE=2 HOROVOD_CROSS_RANK=1 HOROVOD_CROSS_SIZE=2
    HOROVOD_GLOO_RENDEZVOUS_ADDR=worker-1 HOROVOD_GLOO_RENDEZVOUS_PORT=2222 HOROVOD_CONTROLLER=gloo ...

`horovodrun` would set the same. riseml needs neither it nor ssh nor MPI: `riseml.job_programs.rank_launcher` starts the
processes of each job, and in the first one it is the rendezvous server. Each line of `run` runs in all processes, and
the next one begins when all have ended it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName, hostname, job_name, split_address
from riseml.base.states import JobDuty
from riseml.frameworks.base import BaseImage, Binding, FrameworkJob, join_run_lines, make_rank_command
from riseml.frameworks.process_group import find_job, limit_threads, make_placeholders
from riseml.frameworks.tensorboard import make_tensorboard_role, tensorboard_options
from riseml.job_programs import launch_ranks
from riseml.spec.config.types import Horovod, Train

if TYPE_CHECKING:
    from riseml.model import Environment, Plan

VERSION = "0.28.1"
_PROCESSES = "processes"
_MEETING = "$HOROVOD_GLOO_RENDEZVOUS_ADDR:$HOROVOD_GLOO_RENDEZVOUS_PORT"
_PATIENCE = "export HOROVOD_GLOO_TIMEOUT_SECONDS=${HOROVOD_GLOO_TIMEOUT_SECONDS:-300}"
"""Horovod's default of 30 s ends a training on a busy machine, and one whose container was paused."""


class HorovodPlugin:
    """The plug-in for `horovod` in the sections of TensorFlow and PyTorch."""

    name = "horovod"

    def image(self, train: Train) -> BaseImage:
        return BaseImage(f"horovod/horovod{'' if train.resources.gpus else '-cpu'}:{VERSION}")

    def roles(self, train: Train) -> tuple[FrameworkJob, ...]:
        workers = range(1, _section_of(train).workers + 1)
        roles = [FrameworkJob(job_name("worker", index), JobDuty.DECIDES, train.resources) for index in workers]
        if train.tensorflow is not None and train.tensorflow.tensorboard:
            roles.append(make_tensorboard_role(train.tensorflow.tensorboard))
        return tuple(roles)

    def options(self, train: Train) -> Environment:
        board = None if train.tensorflow is None else train.tensorflow.tensorboard
        return (_PROCESSES, str(_section_of(train).processes)), *tensorboard_options(board)

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        workers = _list_workers(plan)
        processes = _count_processes(plan)
        nodes = len(workers)
        host, port = split_address(addresses[workers[0]])
        placeholders = make_placeholders(workers, job, addresses)
        if job not in workers:
            return Binding({"TOTAL_WORKERS": str(nodes)}, placeholders)
        index = str(workers.index(job))
        ranks = _list_ranks(int(index), processes)
        variables = {
            **(ranks[0] if processes == 1 else {}),
            **{
                "HOROVOD_SIZE": str(processes * nodes),
                "HOROVOD_LOCAL_SIZE": str(processes),
                "HOROVOD_CROSS_SIZE": str(nodes),
            },
            **{"HOROVOD_CROSS_RANK": index, "HOROVOD_HOSTNAME": hostname(job)},
            **{"HOROVOD_GLOO_RENDEZVOUS_ADDR": host, "HOROVOD_GLOO_RENDEZVOUS_PORT": port},
            # Without it, Horovod in an image with MPI chooses MPI, and every process trains alone.
            **{"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"},
            **{"WORKER_INDEX": index, "TOTAL_WORKERS": str(nodes)},
        }
        return Binding(variables, placeholders)

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        workers = _list_workers(plan)
        if job not in workers:
            return join_run_lines(lines)
        processes = _count_processes(plan)
        index = workers.index(job)
        planned = find_job(plan, job)[1]
        more = {"job": job, "node": index, "nodes": len(workers), "address": _MEETING}
        launch = launch_ranks(
            make_rank_command(plan, planned, lines), index * processes, _list_ranks(index, processes), **more
        )
        return limit_threads(planned, processes, f"{_PATIENCE}\n{launch}")


def _list_workers(plan: Plan) -> list[JobName]:
    return [job.name for job in plan.jobs if job.part is JobDuty.DECIDES]


def _list_ranks(index: int, processes: int) -> list[dict[str, str]]:
    """Return the variables that differ between the processes of one job."""
    return [{"HOROVOD_RANK": str(index * processes + at), "HOROVOD_LOCAL_RANK": str(at)} for at in range(processes)]


def _count_processes(plan: Plan) -> int:
    return int(dict(plan.options).get(_PROCESSES, "1"))


def _section_of(train: Train) -> Horovod:
    sections = [section.horovod for section in (train.tensorflow, train.pytorch) if section is not None]
    return next((section for section in sections if section is not None), Horovod(workers=1, processes=1))
