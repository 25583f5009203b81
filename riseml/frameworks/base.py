"""The interface of frameworks: what a plug-in is, and what each of its methods gets and returns.

A plug-in turns the section of a framework in riseml.yml into jobs, and gives each job what its processes need to find
each other. It is one class without state and without I/O, in a module beside this one and in one line of `registry.py`.
riseml calls a plug-in twice:

1. when it makes the plan: `image`, `roles`, `options`. No address is known yet. What the plug-in needs again later, it
   returns from `options`; riseml stores that with the plan.
2. when it launches a job: `bind`, then `script`, once for each job. Every address of the gang is known.

For TensorFlow and `worker: 3, ps: 1`, `bind` puts this value into the environment of the job `worker.1`, as TF_CONFIG:

    {"cluster": {"chief": ["master:2222"], "worker": ["worker-1:2222", "worker-2:2222"], "ps": ["ps-1:2222"]},
     "task": {"type": "worker", "index": 0}}

A small plug-in, for a framework whose processes find each other by the address of the first one:

    class Pytorch:
        name = "pytorch"                      # `framework: pytorch`

        def image(self, train):
            return BaseImage("pytorch/pytorch:2.4.0")    # for a file without `image`

        def roles(self, train):
            return (FrameworkJob(JobName("master"), Part.DECIDES, train.resources),
                    FrameworkJob(JobName("worker.1"), Part.HELPS, train.resources, WORKER_GRACE))

        def options(self, train):
            return ()                         # `bind` needs nothing but the plan

        def bind(self, plan, job, addresses):
            host, port = split_address(addresses[JobName("master")])
            rank = [planned.name for planned in plan.jobs].index(job)
            return Binding({"MASTER_ADDR": host, "MASTER_PORT": port, "RANK": str(rank)}, placeholders)

        def script(self, plan, job, lines):
            return join_run_lines(lines)

`placeholders` has a value for every built-in placeholder except `data_dir` and `output_dir`
(`riseml.spec.scalars.placeholders.BUILT_IN_PLACEHOLDERS`); tests/unit/frameworks/test_registry.py checks each plug-in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.states import JobDuty
from riseml.job_programs.script_shell import make_shell_command
from riseml.spec.config.types import Resources, Shell, Train
from riseml.spec.scalars.placeholders import variable_name

if TYPE_CHECKING:
    from riseml.model import Environment, Plan, PlannedJob

WORKER_GRACE = 10.0
"""Seconds that a worker may go on after the experiment succeeded."""

EVALUATOR_GRACE = 600.0
"""Seconds that an evaluator may go on after the experiment succeeded: it evaluates the last checkpoint."""

_STOP = "case $? in 0) ;; *) exit ;; esac"
"""Ends the script after a failing line. A shell with `-e` alone does not stop after `false && true`."""


_BARRIER = "{ echo >&8 && read -r riseml_go <&9; } || exit"
"""Waits for the other processes, over the two pipes that the launcher gives to each shell."""


@dataclass(frozen=True, slots=True)
class BaseImage:
    """The image of a framework, for a file without `image`."""

    reference: str  # as in `docker pull`
    install: tuple[str, ...] = ()  # shell steps on top of it, before those of the file
    shell: Shell = Shell.AUTO  # shell of these steps


@dataclass(frozen=True, slots=True)
class FrameworkJob:
    """One job that a framework asks for."""

    name: JobName  # `master`, `worker.1`
    part: JobDuty  # what the exit of the job means for the experiment
    resources: Resources
    grace: float = 0.0  # seconds that the job may go on after the experiment succeeded
    run: tuple[str, ...] | None = None  # replaces the user's command (tensorboard); None: the user's command
    image: BaseImage | None = None  # with all its steps, the same for each job of this type; None: that of the file
    shell: Shell | None = None  # None: that of the file


@dataclass(frozen=True, slots=True)
class Binding:
    """What one job gets to find its peers."""

    variables: Mapping[str, str]  # environment variables: TF_CONFIG, WORKER_INDEX
    placeholders: Mapping[str, str]  # values of the built-in placeholders of `run`: task_index, worker_hosts


class Framework(Protocol):
    """A plug-in: at most five methods, no state, no I/O."""

    name: str
    """The value of `framework` in riseml.yml."""

    def image(self, train: Train) -> BaseImage | None:
        """Return the image for a file without `image`; None when the framework has no default image."""

    def roles(self, train: Train) -> tuple[FrameworkJob, ...]:
        """Return every job of one experiment, one that decides first."""

    def options(self, train: Train) -> Environment:
        """Return what `bind` and `script` need later, as pairs of texts; riseml stores them as `plan.options`."""

    def bind(self, plan: Plan, job: JobName, addresses: Mapping[JobName, str]) -> Binding:
        """Return what `job` gets to find its peers; called once for each launch.

        Args:
            plan: the plan of the experiment, with `plan.options`.
            job: one of `plan.jobs`.
            addresses: `host:port` of every job of the plan: `{"master": "master:2222", "worker.1": "worker-1:2222"}`.
        """

    def script(self, plan: Plan, job: JobName, lines: Sequence[str]) -> str:
        """Return the shell script of `job`, for bash and sh with `-e`; most plug-ins return `join_run_lines(lines)`.

        Args:
            plan: the plan of the experiment.
            job: one of `plan.jobs`.
            lines: the lines of `run`, with their placeholders filled.
        """


def join_run_lines(lines: Sequence[str]) -> str:
    """Return one shell script that stops at the first failing line. A line that ends with a backslash continues in the
    next line.
    """
    *first, last = lines
    return "\n".join([*(line if _continues(line) else f"{line}\n{_STOP}" for line in first), last])


def join_lines_at_barriers(lines: Sequence[str]) -> str:
    """Return the script of `join_run_lines` for one of several processes. All processes end a line before the next line
    begins: after each line the shell reports to `riseml.job_programs.rank_launcher`, and waits for its answer.
    """
    *first, last = lines
    return "\n".join([*(line if _continues(line) else f"{line}\n{_STOP}\n{_BARRIER}" for line in first), last])


def make_rank_command(plan: Plan, planned: PlannedJob, lines: Sequence[str]) -> tuple[str, ...]:
    """Return the command of one of several processes of a job, with the script of `join_lines_at_barriers`."""
    variables = {variable_name(name): value for name, value in plan.parameters}
    return make_shell_command(planned.shell, join_lines_at_barriers(lines), variables=variables)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
