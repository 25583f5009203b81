"""What `train` would do with a riseml.yml."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from riseml.wire.results import ObjectiveView


class PlanJob(TypedDict):
    """One job of a plan."""

    name: str  # `worker.1`
    image: str  # before `install`; with `roles`, the image of its role
    part: str  # what its exit means: `DECIDES`, `HELPS`, `SERVES` or `WATCHES`
    host: str | None  # where it would run if it were submitted now; None: it would wait
    cpus: float  # guaranteed cores
    mem_mib: int  # guaranteed memory
    gpus: int
    gpu: str  # model that each of its GPUs must be; empty: any
    gpu_mem_mib: int | None  # memory that each of its GPUs must have; None: any
    limit_cpus: float | None  # hard limit in cores; None: no limit
    limit_mem_mib: int | None  # hard limit; None: no limit
    shm_mib: int  # size of its /dev/shm
    environment: dict[str, str]  # its variables, without those of `passed_on`
    passed_on: list[str]  # names of variables with the caller's values, which are never shown
    run: list[str]  # the lines of `run` with every placeholder filled
    command: list[str]  # the process that runs these lines


class PlanExperiment(TypedDict):
    """One combination of parameters."""

    id: str  # the ID that it would get if it were submitted now
    output: str  # its output folder
    waits: str | None  # why it would not start at once; None: it would
    parameters: dict[str, str]
    jobs: list[PlanJob]  # without the build


class PlanEnvironment(TypedDict):
    """The environment of jobs."""

    image: str  # what the jobs would run: with `install`, the environment that is built
    base: str  # the image that the environment is built on
    replaced_by: str | None  # what jobs get in place of the image, where they run as processes; None: the image
    install: list[str]  # the steps
    refused: str | None  # why the environment is never made; None: it would be
    # Every host has the image. None: unknown, because no host answers, or because the server has not the project's
    # files, which install steps may read; `image` is the base then.
    cached: bool | None


class PlanRoleEnvironment(PlanEnvironment):
    """The environment of a role that has one of its own."""

    role: str


class PlanSearch(TypedDict):
    """The search that makes the experiments of a set, one after the other."""

    method: str  # `tpe`
    metric: str  # the name of the metric
    goal: Literal["maximize", "minimize"]
    objectives: list[ObjectiveView]  # all of them
    trials: int  # in all
    repeat: int  # runs of each trial, with another seed each
    concurrency: int  # at the same time
    stop: str | None  # how trials are stopped early: `asha`; None: none is


class PlanData(TypedDict):
    """Data that the server fetches before the jobs start, or a folder of the data folder."""

    url: str
    folder: str  # its name below the data folder of the jobs
    refused: str | None  # why the server does not fetch it; None: it does


class PlanSave(TypedDict):
    """Where the output is copied."""

    url: str
    refused: str | None  # why the server does not write there; None: it does


class PlanView(PlanEnvironment):
    """What `train` would do. The environment is that of all jobs whose role has none of its own."""

    project: str
    framework: str  # empty without a framework
    role_environments: list[PlanRoleEnvironment]
    save: PlanSave | None  # None: the output stays where it is
    data: list[PlanData]  # empty: jobs see the whole data folder
    search: PlanSearch | None  # None: every experiment is made at once
    experiments: list[PlanExperiment]  # one for each combination of parameters; of a search, its first trial
    notes: list[str]  # remarks about its riseml.yml
