"""Run an experiment again, with its original code, environment and data: what `riseml rerun` and `Run.rerun` do."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from riseml.base.consent import PassedVariable
from riseml.base.errors import Refused
from riseml.base.records import dataclass
from riseml.submission.capsule_source import CapsuleSource, find_capsule, read_source
from riseml.submission.local_server import connect_client
from riseml.submission.passed_variables import take_variables
from riseml.submission.submitting import Pairs, add_executor, connect_to_run, submit_once

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client
    from riseml.spec.config.types import Spec
    from riseml.submission.submitter import Submitter

    Submit = Callable[[Client, wire.Submission], wire.ExperimentView]

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


def begin_run(submitter: Submitter, text: str, request: RerunRequest, submit: Submit = submit_once) -> Rerun:
    """Submit the run that the user has named, after checking that nothing is missing and that the user agrees.

    Args:
        submitter: the user.
        text: an ID, a name or a tag; or the folder of a capsule.
        request: the options for the new run.
        submit: hands the submission to the server.

    Raises:
        SpecError: this version of riseml does not take that riseml.yml, or not with these values.
        Refused: a part of the run is missing, or the user does not agree.
    """
    place = find_capsule(submitter, text)
    with ExitStack() as stack:
        own = None
        if place is None:
            settings = submitter.settings()
            own = stack.enter_context(connect_client(settings, submitter.environ, submitter.messages))
        source = read_source(submitter, text, place, own)
    submission, unset = _prepare(submitter, source, request)
    client = connect_to_run(submitter)
    try:
        missing = _list_variables(unset) + _find_missing(source, client, submission)
        _refuse_missing(submitter, source, missing, request, unset)
        if any(part["part"] == "image" for part in missing):
            submission["pinned"] = []
        confirm_rerun(submitter, source, submission, request.allowed)
        _send_code(source, client)
        client.check_submission(submission)
        _announce(submitter, client, submission)
        return Rerun(client, submit(client, submission))
    except BaseException:
        client.close()
        raise


def _list_variables(unset: list[str]) -> list[wire.MissingPart]:
    return [{"part": "variable", "message": f"the variable {name} is not set (`export {name}=...`)"} for name in unset]


def _prepare(submitter: Submitter, source: CapsuleSource, request: RerunRequest) -> tuple[wire.Submission, list[str]]:
    """Return the submission, and the names of the variables that it lacks; print every problem of the riseml.yml.

    Raises:
        SpecError: this version of riseml does not take that riseml.yml, or not with these values.
    """
    capsule = source.capsule
    parameters = [*source.parameters, *request.parameters]
    settings = [*_keep_shell(submitter, source), *request.settings]
    spec = _check_config(submitter, source, parameters, settings)
    names = [variable.name for variable in spec.train.env if variable.is_passed]
    variables = {**submitter.environ, **_read_written(source)}
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
    return add_executor(submitter, submission), [name for name in names if name not in variables]


def _check_config(submitter: Submitter, source: CapsuleSource, parameters: Pairs, settings: Pairs) -> Spec:
    from riseml.spec.config.loader import Overrides, check_config
    from riseml.spec.yaml.problems import SpecError

    file = _name_file(source)
    checked = check_config(source.config, file, Overrides(tuple(parameters), tuple(settings)))
    submitter.messages.print_problems(checked.problems, file, source.config)
    if checked.spec is None:
        raise SpecError(checked.problems)
    return checked.spec


def _repeat_annotation(capsule: wire.Capsule, note: str | None) -> wire.RunAnnotation:
    """Return what the new run has of what users said about the original one: tags and note. A name is for one run."""
    annotation: wire.RunAnnotation = {"name": ""}
    if "tags" in capsule:  # a capsule of an earlier version has none: those of its riseml.yml hold
        annotation["tags"] = capsule["tags"]
    if note is not None or "note" in capsule:
        annotation["note"] = capsule.get("note", "") if note is None else note
    return annotation


def _keep_shell(submitter: Submitter, source: CapsuleSource) -> Pairs:
    """Return the setting that keeps the shell of a run from before the key `shell`: sh was the only one."""
    shells = {tuple(job["launch"]["command"][:2]) for job in source.capsule["jobs"] if job["part"] != "watches"}
    if shells != {("/bin/sh", "-ec")} or _SHELL.search(source.config):
        return []
    submitter.messages.print_notes(
        ["sh read the lines of that run, and reads them again (else `--set train.shell=auto`)"]
    )
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
    submitter: Submitter,
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
        submitter.messages.warn(" ".join(f"{part['part']}: {part['message']}".split()))
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


def confirm_rerun(submitter: Submitter, source: CapsuleSource, submission: wire.Submission, allowed: list[str]) -> None:
    """Ask before sending variables of the user's environment. Values that are in the files need no question."""
    from riseml.submission.consent_questions import confirm_variables

    written = _read_written(source)
    run_name = _identify_run(source, submission)
    passed = [
        PassedVariable(run_name, submission["project"], name)
        for name in submission.get("environment", {})
        if name not in written
    ]
    confirm_variables(submitter, passed, allowed, submission["file"])


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


def _announce(submitter: Submitter, client: Client, submission: wire.Submission) -> None:
    """Tell the user when install steps run again: they may install other package versions than in the original run."""
    request = submission.copy()
    request.pop("environment", None)  # a plan needs no values of variables
    plan = client.plan_submission(request)
    if plan["install"] and plan["cached"] is False:
        text = "the environment is made again: its install steps may install other versions of packages"
        submitter.messages.print_notes([text])
