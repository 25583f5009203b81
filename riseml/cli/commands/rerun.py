"""`rerun`: run an experiment again, with its original code, environment and data."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.consent import PassedVariable
from riseml.base.errors import Refused, UsageError
from riseml.base.records import dataclass
from riseml.cli.arguments import parse_pairs
from riseml.cli.capsule_source import CapsuleSource, find_capsule, read_source
from riseml.cli.commands.options import JsonOption, MessageOption, ParameterOption, SettingOption
from riseml.cli.commands.train import (
    AllowOption,
    ExecutorOption,
    describe_start,
    follow_to_end,
    read_message,
    submit_experiment,
)
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.text import clean_text
from riseml.submission.passed_variables import take_variables
from riseml.submission.submitting import Pairs, add_executor

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client
    from riseml.spec.config.types import Spec

_IMAGE_SETTINGS = ("train.image", "train.tensorflow", "train.pytorch", "train.jax", "train.roles")
_SHELL = re.compile(r"^[ \t]*shell\s*:|[{,]\s*shell\s*:", re.MULTILINE)  # the key, in a block or in braces
_CANNOT_FORCE = frozenset({"code", "variable"})


@dataclass(frozen=True, slots=True)
class RerunRequest:
    """The user's options for the new run."""

    parameters: Pairs
    settings: Pairs
    allowed: list[str]  # variables of the environment that may be sent
    force: bool  # run without the missing parts, where that is possible
    note: str | None  # on the new run; None: that of the original run


@dataclass(frozen=True, slots=True)
class Rerun:
    """The started experiment, and the client that can follow it."""

    client: Client
    experiment: wire.ExperimentView

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def rerun_experiment(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="ID|CAPSULE", help="An experiment or set, or the .riseml of an output.")
    ],
    *,
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Start it and return at once.")] = False,
    json: JsonOption = False,
    parameters: ParameterOption = None,
    settings: SettingOption = None,
    message: MessageOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Run with the image of now, and without data that is gone.")
    ] = False,
    executor: ExecutorOption = None,
    allow_env: AllowOption = None,
) -> None:
    """Run an experiment again: the same code, environment and data.

    `riseml rerun 4`, `riseml rerun 4 -p lr=0.1`, `riseml rerun ./output/.riseml` on any server. If a part of the run is
    no longer available, the command names it and starts nothing (exit code 4).
    """
    command: CommandContext = replace(context.obj, asks=context.obj.asks and not json)
    if executor is not None:
        command = replace(command, environ={**command.environ, "RISEML_EXECUTOR": executor.value})
    pairs = parse_pairs(parameters or [], "-p"), parse_pairs(settings or [], "--set")
    note = None if message is None else read_message(message)
    with closing(begin_run(command, source, RerunRequest(*pairs, allow_env or [], force, note))) as begun:
        if json:
            command.printer.print_json(begun.experiment)
        if not detach:
            follow_to_end(command, begun.client, begun.experiment, json=json, long=False)
    if not json:
        command.printer.print_lines([describe_start(begun.experiment)])


def begin_run(command: CommandContext, text: str, request: RerunRequest) -> Rerun:
    """Submit the run that the user has named, after checking that nothing is missing and that the user agrees."""
    place = find_capsule(command, text)
    with ExitStack() as stack:
        own = stack.enter_context(command.connect()) if place is None else None
        source = read_source(command, text, place, own)
    submission, unset = _prepare(command, source, request)
    client = command.connect_to_run()
    try:
        missing = _list_variables(unset) + _find_missing(source, client, submission)
        _refuse_missing(command, source, missing, request, unset)
        if any(part["part"] == "image" for part in missing):
            submission["pinned"] = []
        confirm_rerun(command, source, submission, request.allowed)
        _send_code(source, client)
        client.check_submission(submission)
        _announce(command, client, submission)
        return Rerun(client, submit_experiment(command, client, submission))
    except BaseException:
        client.close()
        raise


def _list_variables(unset: list[str]) -> list[wire.MissingPart]:
    return [{"part": "variable", "message": f"the variable {name} is not set (`export {name}=...`)"} for name in unset]


def _prepare(
    command: CommandContext, source: CapsuleSource, request: RerunRequest
) -> tuple[wire.Submission, list[str]]:
    """Return the submission, and the names of the variables that it lacks; print every problem of the riseml.yml.

    Raises:
        Exit: this version of riseml does not take that riseml.yml, or not with these values.
    """
    capsule = source.capsule
    parameters = [*source.parameters, *request.parameters]
    settings = [*_keep_shell(command, source), *request.settings]
    spec = _check_config(command, source, parameters, settings)
    names = [variable.name for variable in spec.train.env if variable.is_passed]
    variables = {**command.environ, **_read_written(source)}
    submission: wire.Submission = {
        "project": spec.project,
        "file": _name_file(source),
        "config": source.config,
        "parameters": parameters,
        "settings": settings,
        "environment": take_variables([name for name in names if name in variables], variables),
        "rerun_of": capsule["experiment"],
        "annotation": _repeat_annotation(capsule, request.note),
        "pinned": _list_images(capsule, request.settings),
    }
    if capsule["code"]["digest"]:
        submission["snapshot"] = capsule["code"]["digest"]
    if capsule["code"]["git"] is not None:
        submission["git"] = capsule["code"]["git"]
    return add_executor(command, submission), [name for name in names if name not in variables]


def _check_config(command: CommandContext, source: CapsuleSource, parameters: Pairs, settings: Pairs) -> Spec:
    from riseml.spec.config.loader import Overrides, check_config
    from riseml.spec.yaml.problems import SpecError, count_problems

    file = _name_file(source)
    checked = check_config(source.config, file, Overrides(tuple(parameters), tuple(settings)))
    command.printer.print_problems(checked.problems, file, source.config)
    if checked.spec is None and command.json_errors:
        raise SpecError(checked.problems)
    if checked.spec is None:
        command.printer.say(f"{file} has {count_problems(checked.problems)}. Nothing was started.")
        raise Exit(UsageError.exit_code)
    return checked.spec


def _repeat_annotation(capsule: wire.Capsule, note: str | None) -> wire.RunAnnotation:
    """Return what the new run has of what users said about the original one: tags and note. A name is for one run."""
    annotation: wire.RunAnnotation = {"name": ""}
    if "tags" in capsule:  # a capsule of an earlier version has none: those of its riseml.yml hold
        annotation["tags"] = capsule["tags"]
    if note is not None or "note" in capsule:
        annotation["note"] = capsule.get("note", "") if note is None else note
    return annotation


def _keep_shell(command: CommandContext, source: CapsuleSource) -> Pairs:
    """Return the setting that keeps the shell of a run from before the key `shell`: sh was the only one."""
    shells = {tuple(job["launch"]["command"][:2]) for job in source.capsule["jobs"] if job["part"] != "watches"}
    if shells != {("/bin/sh", "-ec")} or _SHELL.search(source.config):
        return []
    command.printer.print_notes(["sh read the lines of that run, and reads them again (else `--set train.shell=auto`)"])
    return [("train.shell", "sh")]


def _name_file(source: CapsuleSource) -> str:
    return source.capsule["code"]["file"] or "riseml.yml"


def _read_written(source: CapsuleSource) -> dict[str, str]:
    """Return the values of `env` in the riseml.yml among the project's files: a capsule has only names."""
    from riseml.capsules.folder import read_project_file
    from riseml.spec.config.resolved import read_written_variables

    archive = None if source.place is None else source.place.find_archive()
    if archive is None or not source.capsule["variables"]["written"]:
        return {}
    variables = read_written_variables(read_project_file(archive, _name_file(source)))
    return {name: value for name, value in variables.items() if name in source.capsule["variables"]["written"]}


def _list_images(capsule: wire.Capsule, settings: Pairs) -> list[wire.PinnedImage]:
    """Return the resolved images of the original run; empty when the user chooses other images."""
    if any(path == name or path.startswith(f"{name}.") for path, _ in settings for name in _IMAGE_SETTINGS):
        return []
    return [
        {"image": environment["image"], "digest": environment["digest"]}
        for environment in capsule["environments"]
        if environment["digest"] is not None
    ]


def _find_missing(source: CapsuleSource, client: Client, submission: wire.Submission) -> list[wire.MissingPart]:
    needs: wire.RerunNeeds = {"images": submission.get("pinned", []), "data": source.capsule["data"]["entries"] or []}
    if "snapshot" in submission and (source.place is None or source.place.find_archive() is None):
        needs["code"] = submission["snapshot"]
    return client.check_rerun(needs)


def _refuse_missing(
    command: CommandContext,
    source: CapsuleSource,
    missing: list[wire.MissingPart],
    request: RerunRequest,
    unset: list[str],
) -> None:
    """Refuse a run whose parts are no longer available, and name them.

    Raises:
        Refused: a part is missing, and the user has not given `--force`, or the run is impossible without it.
    """
    if not missing:
        return
    for part in missing:
        command.printer.warn(clean_text(f"{part['part']}: {part['message']}"))
    fixed = [part for part in missing if part["part"] in _CANNOT_FORCE]
    if request.force and not fixed:
        return
    parts = ", ".join(dict.fromkeys(part["part"] for part in missing))
    text = f"{source.name} cannot be repeated as it was: {parts} cannot be had; nothing was started"
    raise Refused(text, _suggest_step(fixed or missing, unset))


def _suggest_step(missing: list[wire.MissingPart], unset: list[str]) -> str:
    """Return what the user does about missing parts.

    Args:
        missing: the missing parts; only those without which the run is impossible, if there are any.
        unset: the variables that are not set here.
    """
    parts = {part["part"] for part in missing}
    steps = []
    if "code" in parts:
        steps.append("name the folder of a capsule that has project.tar (`riseml rerun OUTPUT/.riseml`)")
    if unset:
        values = " ".join(f"{name}=..." for name in unset)
        names = " ".join(f"--allow-env {name}" for name in unset)
        steps.append(f"`export {values}`, and then the same command with `{names}`")
    return "; ".join(steps) or "bring back what is named above, or use --force to run with what there is now"


def confirm_rerun(
    command: CommandContext, source: CapsuleSource, submission: wire.Submission, allowed: list[str]
) -> None:
    """Ask before sending variables of the user's environment. Values that are in the files need no question."""
    from riseml.submission.consent_questions import confirm_variables

    written = _read_written(source)
    run_name = _identify_run(source, submission)
    passed = [
        PassedVariable(run_name, submission["project"], name)
        for name in submission.get("environment", {})
        if name not in written
    ]
    confirm_variables(command, passed, allowed, submission["file"])


def _identify_run(source: CapsuleSource, submission: wire.Submission) -> str:
    """Return the key of the stored consent: a digest of everything that decides which code gets the variables.

    A capsule could name the code of another run. The user's own `-p` and `--set` are not part of the digest.
    """
    import json
    from hashlib import sha256

    images = [(pin["image"], pin["digest"]) for pin in submission.get("pinned", [])]
    parts = [submission["config"], source.parameters, images, source.capsule["code"]["digest"]]
    return f"run {sha256(json.dumps(parts).encode()).hexdigest()}"


def _send_code(source: CapsuleSource, client: Client) -> None:
    from riseml.capsules.folder import read_archive

    digest = source.capsule["code"]["digest"]
    archive = None if source.place is None else source.place.find_archive()
    if archive is not None and not client.has_snapshot(digest):
        client.put_snapshot(digest, [read_archive(archive)])


def _announce(command: CommandContext, client: Client, submission: wire.Submission) -> None:
    """Tell the user when install steps run again: they may install other package versions than in the original run."""
    request = submission.copy()
    request.pop("environment", None)  # a plan needs no values of variables
    plan = client.plan_submission(request)
    if plan["install"] and plan["cached"] is False:
        text = "the environment is made again: its install steps may install other versions of packages"
        command.printer.print_notes([text])
