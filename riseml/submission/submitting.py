"""Submit a project: check its riseml.yml, ask the user, send the files, and hand the experiment to the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from riseml.base.consent import PassedVariable
from riseml.base.errors import UsageError
from riseml.files.project.messages import format_path
from riseml.submission.config_source import ConfigSource, check_config_source
from riseml.submission.passed_variables import take_variables
from riseml.submission.predecessors import name_predecessors
from riseml.submission.project_sync import ProjectSync

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client
    from riseml.files.project.listing import Listing
    from riseml.submission.checked_config import CheckedConfig
    from riseml.submission.submitter import Submitter

Pairs = list[tuple[str, str]]

MOST_MISSING = 100
"""How many paths that git has not filled a submission names."""


def prepare_submission(
    submitter: Submitter, source: ConfigSource, parameters: Pairs, settings: Pairs, *, pull: bool
) -> wire.Submission:
    """Return the submission without the project's files; tell every problem of riseml.yml.

    Raises:
        SpecError: riseml.yml has errors.
        UsageError: riseml cannot run the framework, or train.env passes on a variable that is not set.
    """
    checked = _check_file(submitter, source, parameters, settings)
    submitter.messages.print_notes(checked.notes)
    submission: wire.Submission = {
        "project": checked.project,
        "file": source.name,
        "config": source.text,
        "parameters": parameters,
        "settings": settings,
        "environment": _collect_variables(checked.passed, submitter.environ),
        "pull": pull,
    }
    return add_executor(submitter, submission)


def add_executor(submitter: Submitter, submission: wire.Submission) -> wire.Submission:
    """Return the submission with the executor that the user chooses by RISEML_EXECUTOR or `--executor`, if any."""
    chosen = submitter.settings().executor
    return submission if chosen is None else {**submission, "executor": chosen}


def confirm_environment(
    submitter: Submitter, source: ConfigSource, submission: wire.Submission, allowed: Sequence[str]
) -> None:
    """Name the variables of the user's environment that will be sent, and ask about those that are not allowed yet.

    Raises:
        Refused: the user says no, or cannot be asked. Nothing was sent.
    """
    from riseml.submission.consent_questions import confirm_variables

    folder = str(source.project.folder.resolve())
    passed = [PassedVariable(folder, submission["project"], name) for name in submission.get("environment", {})]
    confirm_variables(submitter, passed, allowed, source.name)


def connect_to_run(submitter: Submitter) -> Client:
    """Return a client for a user who runs jobs: the server uses the executor that the user asks for.

    Raises:
        Refused: jobs would run as processes, and the user did not choose that.
    """
    from riseml.submission.consent_questions import confirm_processes
    from riseml.submission.local_server import check_wanted_executor, connect_client, switch_executor

    settings = submitter.settings()
    check_wanted_executor(settings, submitter.environ)
    client = connect_client(settings, submitter.environ, submitter.messages)
    try:
        switch_executor(client, settings, submitter.messages)
        confirm_processes(submitter, client)
    except BaseException:
        client.close()
        raise
    return client


def send_with_revision(
    submitter: Submitter, source: ConfigSource, submission: wire.Submission, *, quiet: bool
) -> Client:
    """Send the project while git finds the revision, and add the revision to the submission; see `send_project`."""
    from riseml.files.project.git_files import find_top

    folder = source.project.folder
    if find_top(folder) is None:
        return send_project(submitter, source, submission, quiet=quiet)
    from riseml.files.project.git_state import ask_git
    from riseml.files.project.listing import find_own_folders
    from riseml.submission.project_sync import find_surroundings

    own_folders = [path for path, _ in find_own_folders(folder, find_surroundings(submitter))]
    question = ask_git(folder, submitter.environ, own_folders)
    if question is None:
        return send_project(submitter, source, submission, quiet=quiet)
    with closing(question):
        client = send_project(submitter, source, submission, quiet=quiet, revision=question.revision)
        git = submission["git"]
        git["clean"] = question.read_answer() and not git.get("missing")
    return client


def send_project(
    submitter: Submitter, source: ConfigSource, submission: wire.Submission, *, quiet: bool, revision: str = ""
) -> Client:
    """Send the project's files if the server lacks them, and add their digest to the submission.

    The server checks the submission before a file is read, so that a refusal takes no time.

    Args:
        submitter: the user.
        source: the riseml.yml.
        submission: gets the digest of the files, and the git revision with what git has not filled.
        quiet: tell no progress.
        revision: of the project, in hex; empty: it is in no git repository.
    """
    sync = ProjectSync(submitter, source.project.folder)
    listing = sync.list_files()  # list the files first, to report those that cannot be sent before any request
    tell_exceptions(submitter, listing)
    if revision:
        submission["git"] = {"revision": revision, "clean": None}
        if listing.incomplete:
            missing = sorted(path for part in listing.incomplete for path in part.paths)
            submission["git"]["missing"] = [format_path(path) for path in missing[:MOST_MISSING]]
    if source.project.folder != submitter.folder.absolute():
        submitter.messages.print_notes([f"the project is the folder {format_path(source.place(submitter.folder))}"])
    client = connect_to_run(submitter)
    try:
        submitter.messages.print_notes(filter(None, [client.recall_server()["note"]]))
        name_predecessors(client, submission)
        client.check_submission(submission)
        submission["snapshot"] = sync.send_files(client, listing, quiet=quiet)
    except BaseException:
        client.close()
        raise
    return client


def tell_exceptions(submitter: Submitter, listing: Listing) -> None:
    """Tell what of a project does not travel although a user may expect it."""
    submitter.messages.print_notes(listing.left_out)
    for part in listing.incomplete:
        submitter.messages.warn(f"{part.message}: {part.hint}")


def submit_once(client: Client, submission: wire.Submission) -> wire.ExperimentView:
    """Submit exactly one experiment, also when an answer is lost."""
    import uuid

    return client.submit({**submission, "key": uuid.uuid4().hex})


def _check_file(submitter: Submitter, source: ConfigSource, parameters: Pairs, settings: Pairs) -> CheckedConfig:
    """Check riseml.yml, unless an earlier submission had no problem with the same text.

    Raises:
        SpecError: it has errors.
    """
    from riseml.submission.checked_config import CheckedFile

    file = CheckedFile(submitter.settings(), source, parameters, settings)
    saved_values = file.load()
    if saved_values is not None:
        return saved_values
    checked, is_clean = _check_unknown_file(submitter, source, parameters, settings)
    if is_clean:
        file.keep(checked)
    return checked


def _check_unknown_file(
    submitter: Submitter, source: ConfigSource, parameters: Pairs, settings: Pairs
) -> tuple[CheckedConfig, bool]:
    """Check riseml.yml; return what is in it, and True when the check found no problem, not even a warning."""
    from riseml.frameworks.registry import choose_framework
    from riseml.spec.config.loader import Overrides
    from riseml.spec.yaml.problems import SpecError
    from riseml.submission.checked_config import CheckedConfig

    spec, problems = check_config_source(source, Overrides(tuple(parameters), tuple(settings)))
    submitter.messages.print_problems(problems, source.name, source.text)
    if spec is None:
        raise SpecError(problems)
    choose_framework(spec.train)
    return CheckedConfig.of_spec(spec), not problems


def _collect_variables(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    missing = [name for name in names if name not in environ]
    if missing:
        them, are = ("it", "it is") if len(missing) == 1 else ("them", "they are")
        raise UsageError(
            f"train.env passes {', '.join(missing)} on to the jobs, but here {are} not set",
            f"set {them} first: `export {' '.join(f'{name}=...' for name in missing)}`",
        )
    return take_variables(names, environ)
