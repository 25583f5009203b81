"""A dry run: what the server would do with a submission. No file is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.base.consent import make_process_refusal
from riseml.base.records import dataclass
from riseml.submission.local_server import connect_client
from riseml.submission.predecessors import name_predecessors
from riseml.submission.project_sync import ProjectSync
from riseml.submission.submitting import tell_exceptions

if TYPE_CHECKING:
    from riseml import wire
    from riseml.submission.config_source import ConfigSource
    from riseml.submission.submitter import Submitter


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the server would do with a submission."""

    plan: wire.PlanView
    snapshot: str  # digest of the project's files, SHA-256 in hex
    server: str  # address of the server that made the plan


def make_dry_run(submitter: Submitter, source: ConfigSource, submission: wire.Submission) -> DryRun:
    """Ask the server for its plan, and tell what the user should know before the submission.

    Only a server that has the files already knows whether their image is cached.

    Args:
        submitter: the user.
        source: the riseml.yml.
        submission: without the project's files; it loses the values of variables, and gets the digest of the files.
    """
    passed = submission.pop("environment", {})  # a dry run needs no value, and sends none
    if passed:
        submitter.messages.print_notes([f"{source.name} passes {', '.join(passed)} of your environment on to its code"])
    sync = ProjectSync(submitter, source.project.folder)
    listing = sync.list_files()
    tell_exceptions(submitter, listing)
    snapshot = sync.name_files(listing)
    settings = submitter.settings()
    # not `connect_to_run`: a dry run restarts no server
    with connect_client(settings, submitter.environ, submitter.messages) as client:
        server = client.get_server()
        if client.has_snapshot(snapshot.digest):
            submission["snapshot"] = snapshot.digest
        name_predecessors(client, submission)
        plan = client.plan_submission(submission)
        address = str(client.address)
    if settings.executor not in (None, server["executor"]):
        submitter.messages.warn(f"the riseml server uses the {server['executor']} executor now, and this is its plan")
    if server["missing_engine"] and settings.executor is None:
        submitter.messages.warn(make_process_refusal(server["missing_engine"]).message)
    return DryRun(plan, snapshot.digest, address)
