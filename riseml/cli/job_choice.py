"""The jobs that a command names: those of an experiment (`4.worker.1`), or those of a file that has not run yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from riseml.base.errors import NotFound, UsageError
from riseml.base.records import dataclass
from riseml.cli.arguments import choose_experiment_id, parse_pairs
from riseml.cli.context import CommandContext, Exit
from riseml.spec.yaml.problems import count_problems
from riseml.submission.config_source import check_config_source, read_config_source

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client
    from riseml.spec.config.types import Spec

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ChosenJobs:
    """The jobs of one experiment that the user named."""

    experiment: str  # `4`, `paul.144.1`
    job: str | None  # a job or a role; None: all jobs

    @property
    def identity(self) -> str:
        """The ID that stands for them."""
        return f"{self.experiment}.{self.job}" if self.job else self.experiment


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A riseml.yml, and the jobs that its experiment would have."""

    spec: Spec
    jobs: list[wire.PlanJob]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options with which a command names jobs of a file, instead of those of an experiment."""

    file: Path | None  # a riseml.yml; None: the jobs are those of an experiment
    parameters: list[str] | None  # the values of `-p`
    settings: list[str] | None  # the values of `--set`


@dataclass(frozen=True, slots=True)
class NamedJobs(Generic[Value]):
    """A value for each job of an experiment or of a file, and the jobs that the user has named."""

    values: Mapping[str, Value]  # by the names of the jobs
    job: str | None  # a job or a role; None: all jobs
    prefix: str  # prefix of the jobs' names: `4.`; empty for a file


def read_jobs(
    command: CommandContext,
    words: list[str],
    options: JobOptions,
    ask: Callable[[Client, str], Mapping[str, Value]],
    plan: Callable[[PlannedFile], Mapping[str, Value]],
) -> NamedJobs[Value]:
    """Return the values for the jobs of an experiment from the server, or for the jobs of a file from its plan.

    Args:
        command: the running command.
        words: an ID and a job; with a file only a job.
        options: the file, and the values that change it.
        ask: reads the values of an experiment or a job from the server.
        plan: reads the values from a plan.
    """
    if options.file is None:
        refuse_changes(options.parameters, options.settings)
        with command.connect() as client:
            chosen = choose_jobs(command, client, words)
            return NamedJobs(ask(client, chosen.identity), chosen.job, f"{chosen.experiment}.")
    planned = plan(plan_file(command, options.file, options.parameters or [], options.settings or []))
    return NamedJobs(planned, get_single_word(words), "")


def choose_jobs(command: CommandContext, client: Client, words: list[str]) -> ChosenJobs:
    """Return the jobs that the words `4 worker.1` or `4.worker.1` name; without words, those of the last experiment."""
    from riseml.base.names import parse_id

    identity = parse_id(choose_experiment_id(command, client, words[0] if words else None))
    job = get_single_word(words[1:]) or identity.job
    return ChosenJobs(str(identity).removesuffix(f".{identity.job}"), job)


def plan_file(command: CommandContext, file: Path, parameters: list[str], settings: list[str]) -> PlannedFile:
    """Return the dry run of the file, which shows the jobs that its experiment would have.

    Args:
        command: the running command.
        file: the riseml.yml.
        parameters: the values of `-p`, `name=value`.
        settings: the values of `--set`, `key=value`.

    Raises:
        Exit: the file has errors, which have been printed.
        SpecError: it has errors, and the user wrote --json.
    """
    from riseml.spec.config.loader import Overrides

    pairs = parse_pairs(parameters, "-p"), parse_pairs(settings, "--set")
    source = read_config_source(command.folder, file)
    spec, problems = check_config_source(source, Overrides(*map(tuple, pairs)))
    if spec is None and command.json_errors:
        from riseml.spec.yaml.problems import SpecError

        raise SpecError(problems)
    if spec is None:
        command.printer.print_problems(problems, source.name, source.text)
        command.printer.say(f"{source.name} has {count_problems(problems)}.")
        raise Exit(UsageError.exit_code)
    submission: wire.Submission = {
        "project": spec.project,
        "file": source.name,
        "config": source.text,
        "parameters": pairs[0],
        "settings": pairs[1],
    }
    with command.connect() as client:
        return PlannedFile(spec, client.plan_submission(submission)["experiments"][0]["jobs"])


def refuse_changes(parameters: list[str] | None, settings: list[str] | None) -> None:
    """Refuse options that change a file, for a command about an experiment.

    Raises:
        UsageError: there is such an option.
    """
    if parameters or settings:
        raise UsageError("-p and --set change a file, not an experiment", "add `-f riseml.yml`")


def get_single_word(words: list[str]) -> str | None:
    """Return the only word; None when there is no word.

    Raises:
        UsageError: there are more.
    """
    if len(words) > 1:
        raise UsageError(f"{words[1]!r} is one word too many", "give an ID and a job, or with -f only a job")
    return words[0] if words else None


def select_jobs(values: Mapping[str, Value], job: str | None) -> dict[str, Value]:
    """Return the entries of a job, or of all jobs of a role; all of them for None.

    Raises:
        NotFound: there is no such job.
    """
    chosen = {name: value for name, value in values.items() if job is None or name == job or name.startswith(f"{job}.")}
    if not chosen:
        raise NotFound(f"there is no job {job}", f"the jobs are {', '.join(values)}")
    return chosen
