"""The plug-in for files without a framework: one image, one command, one job called `train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import JobName
from riseml.base.states import JobDuty
from riseml.frameworks.base import BaseImage, Binding, FrameworkJob, join_run_lines
from riseml.spec.config.types import Train

if TYPE_CHECKING:
    from riseml.model import Environment, Plan


class Plain:
    """One job that knows of no peers."""

    name = "plain"

    def image(self, train: Train) -> BaseImage | None:
        return None

    def roles(self, train: Train) -> tuple[FrameworkJob, ...]:
        return (FrameworkJob(JobName("train"), JobDuty.DECIDES, train.resources),)

    def options(self, train: Train) -> Environment:
        return ()

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        places = {
            "job_name": job,
            "task_index": "0",
            "worker_hosts": addresses[job],
            "ps_hosts": "",
            "worker_index": "0",
            "num_workers": "1",
        }
        return Binding({"WORKER_INDEX": "0", "TOTAL_WORKERS": "1"}, places)

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        return join_run_lines(lines)
