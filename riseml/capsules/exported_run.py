"""A capsule as other systems need it: jobs with their variables, environments as Dockerfiles, what is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from riseml import wire
from riseml.base.errors import UsageError
from riseml.base.names import show_framework
from riseml.base.records import dataclass
from riseml.base.terminal_text import plain_line
from riseml.job_programs import REPORT_MODULE, leave_report_module, read_program
from riseml.job_programs.group_shell import HOME_FOLDER
from riseml.job_programs.held_packages import IMAGE_FILE, count_framework_steps, make_hold_command
from riseml.job_programs.script_shell import make_shell_command
from riseml.spec.config.loader import check_config
from riseml.spec.config.resolved import read_written_variables
from riseml.spec.scalars.placeholders import variable_name

CODE = "code"
"""The folder of the project's files in an export."""

EXIT_ON_SIGNALS = "trap 'exit 130' INT\ntrap 'exit 143' TERM\ntrap 'exit 129' HUP"
"""Lines of a script whose trap EXIT must run when a signal ends the script, too: dash does not run it then."""

ANYWHERE = "--slurm or --sh"
"""The flags of `riseml export` for files that run every experiment, as the end of a list."""

_KUBEFLOW_FLAGS = {"tensorflow": "--tfjob", "pytorch": "--pytorchjob"}
_HOSTNAME = re.compile(r"[a-z][a-z0-9-]*")
_JOB = re.compile(r"[a-z][a-z0-9.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # some of them end a line of YAML, others a line of a shell
_IMAGE = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]+")
_LARGEST = 1 << 50  # largest number: MiB, processors, GPUs
_MOST_TITLE = 40  # characters: other systems add the name of a job, and allow 63
_PEER = re.compile(r"\b([a-z][a-z0-9-]*)\.peer\.riseml\b")


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file of an export."""

    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class ExportedJob:
    """One job of a run without riseml. `worker-1.peer.riseml` stands for a host in its texts; `fill_peers` fills it."""

    name: str
    record: wire.CapsuleJob
    hostname: str
    command: tuple[str, ...]
    variables: Mapping[str, str]
    missing: tuple[str, ...]  # variables whose values are in no file: the user sets them before a run


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """What every kind of export begins with."""

    capsule: wire.Capsule
    jobs: tuple[ExportedJob, ...]
    has_code: bool
    data: str  # the folder with the data
    is_foreign: bool = False  # the capsule is from a folder: any person may have written its paths of this machine
    owner: str = "1000:1000"  # uid and gid of the user who runs it
    title: str = field(default="")  # `riseml-4`, a name for other systems
    max_duration: float | None = None  # seconds; None: the run had no limit

    @property
    def deciders(self) -> list[ExportedJob]:
        """The jobs whose exit codes decide."""
        return [job for job in self.jobs if job.record["part"] == "decides"]


def make_run(
    capsule: wire.Capsule, config: str, owner: str, *, has_code: bool, is_foreign: bool = False
) -> ExportedRun:
    """Return the run that a capsule describes.

    Args:
        capsule: what ran.
        config: the text of a riseml.yml, with the values that its `env` contains; empty: there is none.
        owner: uid and gid of the user who runs the export.
        has_code: the project's files are beside it.
        is_foreign: the capsule is from a folder, and not from the user's server.

    Raises:
        UsageError: riseml has written no such capsule.
    """
    values = read_written_variables(config) if config else {}
    spec = check_config(capsule["config"]).spec
    names = {} if spec is None else dict(spec.train.policy.variables)
    values |= {names.get(name, variable_name(name)): value for name, value in capsule["parameters"].items()}
    title = re.sub(r"[^a-z0-9]+", "-", f"riseml-{capsule['experiment']}".lower())[:_MOST_TITLE].strip("-")
    data = capsule["data"]["folder"] if capsule["data"]["folder"].startswith("/") else "./data"
    jobs = tuple(_make_job(job, values) for job in capsule["jobs"])
    _check_names(capsule, jobs)
    max_duration = None if spec is None else spec.train.policy.max_duration
    return ExportedRun(capsule, jobs, has_code, data, is_foreign, owner, title, max_duration)


def describe_run(run: ExportedRun) -> str:
    """Return what was exported, for comments: one line, whatever the capsule says."""
    capsule = run.capsule
    text = plain_line(f"{capsule['project']} {capsule['experiment']}, exported by riseml {capsule['riseml']}")
    return _CONTROL.sub(" ", text)


def _check_names(capsule: wire.Capsule, jobs: tuple[ExportedJob, ...]) -> None:
    """Refuse names that a file would interpret as a path, a command or more than one line, and values that are not
    numbers.

    Raises:
        UsageError: riseml has written no such capsule.
    """
    bad = [job.hostname for job in jobs if not _HOSTNAME.fullmatch(job.hostname) or not _JOB.fullmatch(job.name)]
    bad += [name for job in jobs for name in (*job.variables, *job.missing) if not _VARIABLE.fullmatch(name)]
    images = [
        text for environment in capsule["environments"] for text in (environment["image"], environment["digest"] or "x")
    ]
    bad += [text for text in images if not _IMAGE.fullmatch(text)]
    bad += [text for text in (capsule["project"], capsule["experiment"], capsule["riseml"]) if _CONTROL.search(text)]
    numbers = [value for job in jobs for value in job.record.values() if isinstance(value, int | float)]
    bad += [str(value) for value in numbers if not abs(value) <= _LARGEST]  # NaN, too
    if bad or not jobs or any(job.record["environment"] not in range(len(capsule["environments"])) for job in jobs):
        raise UsageError(
            f"the capsule has a name or number that riseml does not write: {bad[:1]}", "it was changed by hand"
        )


def _make_job(job: wire.CapsuleJob, values: Mapping[str, str]) -> ExportedJob:
    launch = job["launch"]
    hidden = {name: values[name] for name in job["hidden"] if name in values}
    missing = tuple(name for name in job["hidden"] if name not in values)
    variables = {**launch["variables"], **hidden}
    if variables.get("HOME") == HOME_FOLDER:  # nothing makes this folder elsewhere
        variables["HOME"] = "/tmp"
    *shell, script = launch["command"]
    command = (*shell, leave_report_module(script))
    return ExportedJob(job["name"], job, launch["hostname"], command, variables, missing)


def fill_peers(text: str, place: Callable[[str], str]) -> str:
    """Return a text with the host of each job in it; `place` gives it for a host name such as `worker-1`."""
    return _PEER.sub(lambda match: place(match[1]), text)


def list_roles(run: ExportedRun) -> dict[str, list[ExportedJob]]:
    """Return the jobs of each type, in their order: `worker` for `worker.1`."""
    roles: dict[str, list[ExportedJob]] = {}
    for job in run.jobs:
        roles.setdefault(job.name.partition(".")[0], []).append(job)
    return roles


def write_report_module() -> tuple[str, ExportedFile]:
    """Return the module `riseml` that scripts import in a job, as a file among those of the project."""
    return f"{CODE}/{REPORT_MODULE}", ExportedFile(read_program("media_reports"))


def name_base(environment: wire.CapsuleEnvironment) -> str:
    """Return the name of an environment's base image: by its digest, where a registry knows it by that.

    An engine names an image that it did not get from a registry by a digest that no other machine can ask for.
    """
    digest = environment["digest"] or ""
    return digest if "@" in digest else environment["image"]


def is_local(environment: wire.CapsuleEnvironment) -> bool:
    """Return True when the digest of the base image is that of one engine alone, so that a registry may lack it."""
    return bool(environment["digest"]) and "@" not in (environment["digest"] or "")


def write_dockerfiles(run: ExportedRun) -> Iterator[tuple[str, ExportedFile]]:
    """Yield the Dockerfile of each environment: its base, its steps, and the project's files on top; and the module
    `riseml` among them.
    """
    yield write_report_module()
    for at, environment in enumerate(run.capsule["environments"]):
        yield name_dockerfile(at), ExportedFile(_write_dockerfile(run, environment))


def name_dockerfile(environment: int) -> str:
    """Return the name of an environment's Dockerfile."""
    return f"environment-{environment}.dockerfile"


def _write_dockerfile(run: ExportedRun, environment: wire.CapsuleEnvironment) -> str:
    # BuildKit reads `# syntax=...` in the first line as a directive, so other words precede the name.
    lines = [f"# The image was {environment['image']}"]
    lines += [f"FROM {name_base(environment)}", "WORKDIR /code"]
    if run.has_code:
        lines += [f"COPY {json.dumps([f'{CODE}/{path}', f'/code/{path}'])}" for path in environment["files"]]
    lines += _list_step_lines(environment)
    lines += ["USER root", f'RUN ["chown", "{run.owner}", "/code"]']
    lines.append(f"COPY --chown={run.owner} {CODE}/ /code/")
    return "\n".join(lines) + "\n"


def _list_step_lines(environment: wire.CapsuleEnvironment) -> list[str]:
    """Return the lines that run the install steps, which keep what the image brought."""
    commands = [f"RUN {json.dumps(command)}" for command in list_step_commands(environment)]
    own = count_framework_steps(environment["install"])
    hold = [
        "# The steps keep the packages that the image has for its devices",
        f"RUN {json.dumps(make_hold_command(IMAGE_FILE))}",
        f"ARG PIP_CONSTRAINT={IMAGE_FILE}",
        f"ARG UV_CONSTRAINT={IMAGE_FILE}",
    ]
    end = f'RUN ["rm", "-f", "{IMAGE_FILE}"]'
    return [*commands[:own], *hold, *commands[own:], end] if commands[own:] else commands


def list_step_commands(environment: wire.CapsuleEnvironment) -> list[tuple[str, ...]]:
    """Return the commands of the install steps of an environment, as riseml runs them."""
    shell = "sh" if environment.get("shell", "sh") == "sh" else "auto"  # a step may be what installs bash
    return [make_shell_command(shell, step) for step in environment["install"]]


def check_framework(run: ExportedRun, framework: str, kind: str) -> None:
    """Refuse a kind of job that is for another framework.

    Raises:
        UsageError: the experiment has another one.
    """
    if run.capsule["framework"] != framework:
        has = show_framework(run.capsule["framework"]) or "no framework"  # an earlier version wrote `plain`
        own = _KUBEFLOW_FLAGS.get(has)
        fitting = f"{own}, --compose" if own else "--compose"
        raise UsageError(f"a {kind} is for {framework}, and this experiment has {has}", f"{fitting}, {ANYWHERE}")
