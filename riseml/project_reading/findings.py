"""The records of what a project says about itself."""

from __future__ import annotations

import enum

from riseml.base.records import dataclass

FILL_IN = "TODO"
"""Stands in `run` where only the user knows a value."""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A line of a file."""

    file: str  # path in the project
    line: int = 1  # from 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ArgumentKind(enum.Enum):
    """What an argument of a program takes."""

    NUMBER = "number"
    TEXT = "text"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a program."""

    name: str  # without dashes: `batch-size`
    flag: str  # `--batch-size`; empty: the argument is known by its position
    kind: ArgumentKind
    place: CodePlace
    default: str | None = None  # as text; None: none that the code shows
    is_required: bool = False
    choices: tuple[str, ...] = ()  # the values that it takes; empty: any


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The arguments that a program reads."""

    library: str  # argparse, click, typer, ...
    place: CodePlace
    arguments: tuple[Argument, ...] = ()
    subcommand: str = ""  # the word before the arguments; empty: none
    form: str = " "  # between an option and its value
    fixed: tuple[str, ...] = ()  # words that every run has


class ClusterKind(enum.Enum):
    """The jobs that code for several processes needs."""

    TORCH = "torch"
    TENSORFLOW_PS = "tensorflow-ps"
    TENSORFLOW_MIRRORED = "tensorflow-mirrored"
    ESTIMATOR = "estimator"
    HOROVOD = "horovod"
    JAX = "jax"


@dataclass(frozen=True, slots=True)
class ClusterSign:
    """A line of code that belongs to a distributed training."""

    kind: ClusterKind
    words: str  # what the line calls
    place: CodePlace


@dataclass(frozen=True, slots=True)
class MetricPattern:
    """How to find a metric in the lines that a program prints."""

    name: str
    pattern: str  # regular expression with one group
    place: CodePlace


@dataclass(frozen=True, slots=True)
class ScriptFacts:
    """What one script or notebook says."""

    path: str  # in the project
    imports: tuple[tuple[str, int], ...] = ()  # whole names of modules, and the line
    main_line: int = 0  # where the program begins; 0: it is a module alone
    command: CommandLine | None = None
    signs: tuple[ClusterSign, ...] = ()
    patterns: tuple[MetricPattern, ...] = ()
    step: MetricPattern | None = None  # how the step is found
    outputs: tuple[tuple[str, int], ...] = ()  # patterns of files that it writes below the working folder, and the line
    gpu_line: int = 0  # where it wants a GPU without asking whether there is one; 0: nowhere
    reports: bool = False  # it calls riseml.report
    is_relative: bool = False  # it imports from its own package, so that `python -m` must start it
    installs: tuple[str, ...] = ()  # steps of a notebook: `pip install x`


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that a project asks for."""

    name: str  # as PyPI writes it: lower case, dashes
    versions: str  # `>=2.0,<3`; empty: any
    place: CodePlace


@dataclass(frozen=True, slots=True)
class Packages:
    """What a project asks for, and how it is installed."""

    requirements: tuple[Requirement, ...] = ()
    install: tuple[str, ...] = ()  # steps of `install`
    place: CodePlace | None = None  # of the file that the steps install; None: none
    python: str = ""  # `3.10`; empty: any
    image: str = ""  # that the steps need; empty: any with Python
    prefix: str = ""  # what the command of `run` begins with
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageFile:
    """What a Dockerfile says."""

    image: str
    place: CodePlace
    steps: tuple[str, ...] = ()  # of `RUN`
    variables: tuple[tuple[str, str], ...] = ()  # of `ENV`
    command: str = ""  # of `CMD` or `ENTRYPOINT`
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectFinding:
    """One row of what `init` shows."""

    label: str  # `framework`, `install`, ...
    value: str
    place: CodePlace | None
    why: str  # what is there


@dataclass(frozen=True, slots=True)
class Proposal:
    """A riseml.yml that fits a project."""

    program: str  # the script or notebook
    choices: tuple[str, ...]  # all that could be the program, the best first
    framework: str = ""  # tensorflow, pytorch, jax; empty: none
    version: str = ""  # of the framework; empty: its default
    image: str = ""  # empty: that of the framework, or python:3.11
    cluster: ClusterKind | None = None
    has_evaluator: bool = False
    install: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # of `run`, as a shell reads them
    comments: tuple[str, ...] = ()  # beside `run`
    parameters: tuple[tuple[str, str], ...] = ()  # names and values
    variables: tuple[tuple[str, str], ...] = ()  # of `env`
    metrics: tuple[tuple[str, str], ...] = ()  # names and patterns
    outputs: tuple[str, ...] = ()
    gpus: int = 0
    reports: bool = False
    findings: tuple[ProjectFinding, ...] = ()
    remarks: tuple[str, ...] = ()  # what the user should know or do
