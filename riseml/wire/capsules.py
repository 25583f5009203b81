"""Capsules: what is needed to run an experiment again. `schemas/capsule.schema.json` is the contract of the file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import MaxLen
from typing_extensions import TypedDict

from riseml.wire.metrics import MetricView
from riseml.wire.state_names import StateName
from riseml.wire.submissions import GitState, PinnedImage

CAPSULE_FOLDER = ".riseml"
"""The folder of a capsule in OUTPUT_DIR."""

CAPSULE_FILE = "capsule.json"
CODE_FILE = "project.tar"
"""The files of a capsule."""

MOST_CODE = 4 << 20
"""Bytes of a project's archive that a capsule holds. A larger project stays on the server, by its digest."""


class CapsuleCode(TypedDict):
    """The project's files."""

    digest: str  # SHA-256 (hex); empty: the experiment has none
    included: bool  # project.tar beside the capsule has them; False: the server has them
    file: str  # the riseml.yml among them, as the user named it
    git: GitState | None  # None: no git repository


class CapsuleEnvironment(TypedDict):
    """What the jobs ran in."""

    image: str  # the base image, as riseml.yml or the framework names it
    digest: str | None  # what that name stood for; None: jobs ran as processes, or it was not resolved yet
    install: list[str]  # the steps on top of it
    shell: NotRequired[Literal["auto", "bash", "sh"]]  # that read the steps; without it, sh
    files: list[str]  # project files that the steps could read
    packages: list[str] | None  # what `pip freeze` said after the steps; None: not known, or there are no steps


class CapsuleData(TypedDict):
    """The data folder."""

    folder: str  # on the host, or `volume NAME`
    entries: list[str] | None  # what was in it, at most 1,000 names; None: the server does not see it


class CapsuleGpu(TypedDict):
    """One GPU of a job."""

    id: str
    name: str
    mem_mib: int
    driver: str


class CapsuleHost(TypedDict):
    """One host that ran jobs."""

    name: str
    runs: str  # `Docker 20.10.24`; `processes, Python 3.11.7`
    gpus: list[CapsuleGpu]  # those that jobs had


class CapsuleLaunch(TypedDict):
    """A job as it would run in a network of its own, whatever its place was.

    `worker-1.peer.riseml:2223` stands for the address of `worker.1`; each job has another port.
    """

    hostname: str
    command: list[str]
    variables: dict[str, str]  # without those of `hidden`


class CapsuleJob(TypedDict):
    """One job."""

    name: str
    environment: int  # its place in `environments`, from 0
    part: Literal["decides", "helps", "serves", "watches"]  # what its end means for the experiment
    host: str | None
    address: str | None
    attempt: int
    shell: NotRequired[Literal["bash", "sh"] | None]  # that read its lines; None: not known; without it, sh
    state: StateName
    exit_code: int | None
    started_at: str | None
    ended_at: str | None
    cpus: float
    mem_mib: int
    gpus: int
    cpus_limit: float | None
    mem_limit_mib: int | None
    shm_mib: int
    variables: dict[str, str]  # as the job found them, without those of `hidden`
    hidden: list[str]  # variables whose values are in no capsule
    tf_config: dict[str, Any] | None
    launch: CapsuleLaunch


class CapsuleVariables(TypedDict):
    """The names in `env` of riseml.yml."""

    passed: list[str]  # their values came from the user's environment
    written: list[str]  # their values stand in riseml.yml


class CapsuleTimes(TypedDict):
    """When things happened, RFC 3339."""

    created_at: str | None
    placed_at: str | None
    started_at: str | None
    ended_at: str | None


class Capsule(TypedDict):
    """Everything about one experiment that another one like it needs."""

    version: Literal[1]  # version of this shape
    riseml: str  # the version that ran it
    complete: bool  # the experiment has ended
    experiment: str  # `4`, `144.3`
    user: str
    project: str
    framework: str  # empty without a framework
    rerun_of: str | None  # the experiment that it repeats
    name: NotRequired[str]  # that a user has given it, or its set; empty: none. Earlier versions wrote none
    tags: NotRequired[list[str]]  # its own, then those of its set
    note: NotRequired[str]  # Markdown of a user; empty: none
    config: str  # riseml.yml with the values of the command line; `env` has names only
    parameters: dict[str, str]
    seeds: dict[str, str]  # parameters and variables whose names have `seed` in them
    code: CapsuleCode
    environments: list[CapsuleEnvironment]  # first the one of roles without their own environment
    variables: CapsuleVariables
    data: CapsuleData
    output: str  # where it is
    hosts: list[CapsuleHost]
    jobs: list[CapsuleJob]
    state: StateName
    reason: str
    message: str
    results: dict[str, MetricView]  # what jobs reported, by the name of the metric
    times: CapsuleTimes


class CapsuleView(TypedDict):
    """The capsule of an experiment, and its riseml.yml with all values."""

    capsule: Capsule
    config: str


class RerunNeeds(TypedDict):
    """What the repeat of a run needs from a server."""

    code: NotRequired[Annotated[str, MaxLen(64)]]  # digest of the project's files
    images: NotRequired[Annotated[list[PinnedImage], MaxLen(100)]]
    data: NotRequired[Annotated[list[Annotated[str, MaxLen(4096)]], MaxLen(1000)]]  # names in the data folder


class MissingPart(TypedDict):
    """One part of a run that is no longer available."""

    part: Literal["code", "image", "data", "variable"]
    message: str  # for people


class MissingParts(TypedDict):
    """The parts of a run that this server cannot provide."""

    missing: list[MissingPart]
