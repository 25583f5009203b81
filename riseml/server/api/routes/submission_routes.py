"""The routes that start or repeat a run: project archives, the plan, the check, the submission, and capsules."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request, Response
from fastapi.responses import StreamingResponse

from riseml import wire
from riseml.base.errors import NotFound, UsageError
from riseml.base.faultpoints import Point, reach
from riseml.base.names import parse_id
from riseml.control.permissions import sees_everything
from riseml.files.archives.project_files import ProjectFiles, write_tar
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.failures import FAILURES
from riseml.server.api.request_log import describe_accepted
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.secret_owners import list_submission_owners
from riseml.server.api.submissions.companions import make_tensorboard
from riseml.server.api.submissions.dry_run import show_plan
from riseml.server.api.submissions.manifest_body import read_manifest_body
from riseml.server.api.submissions.pull import pull_images
from riseml.server.api.submissions.submit import (
    Planned,
    check_choice,
    check_room,
    check_secrets,
    check_text,
    list_passed,
    make_new_experiments,
    plan_submission,
)
from riseml.server.api.submissions.team_checks import check_for_team, find_project_spaces, give_to_project
from riseml.server.api.submissions.team_submission import check_priority
from riseml.server.api.submissions.upload_room import make_room_for_next
from riseml.server.api.views.named_experiments import find_details, show_details
from riseml.server.api.waiting import wait_for_any_host, wait_for_pool_file
from riseml.server.clock import now
from riseml.server.data.team_data import find_user_folder
from riseml.server.hosts.missing_parts import find_missing_data, find_missing_image
from riseml.server.log_line import write_line
from riseml.server.services import Services
from riseml.store.insertion import NewExperiments, admit_all

Digest = Annotated[str, Path(max_length=64, description="the SHA-256 of the project's files, in hex")]
PackName = Annotated[str, Path(max_length=32, description="of a pack, 32 hex digits")]
Submission = Annotated[wire.Submission, Body()]
TensorBoardRequest = Annotated[wire.TensorBoardRequest, Body()]
Needs = Annotated[wire.RerunNeeds, Body()]

_NO_BODY: dict[int | str, dict[str, Any]] = {code: {"model": None} for code in FAILURES}  # HEAD answers have no body
_BINARY_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_KNOWN_KEY: dict[int | str, dict[str, Any]] = {
    200: {"model": wire.ExperimentView, "description": "the same `key` was used before: this is what it made"}
}
_TAR_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}}}
}

log = logging.getLogger(__name__)


def add_submission_routes(router: APIRouter, services: Services) -> None:
    """Add /snapshots, /plans, /tensorboards and the POST routes of /experiments."""
    _add_snapshot_routes(router, services)

    @router.post("/plans")
    def plan(submission: Submission, caller: CallerOf) -> wire.PlanView:
        planned = plan_submission(submission, caller, services)
        if submission.get("pull"):
            planned = _pull(planned, caller, services)
        return show_plan(submission, planned, caller, services, now())

    @router.post("/experiments", status_code=201, responses=_KNOWN_KEY)
    def submit(submission: Submission, caller: CallerOf, response: Response) -> wire.ExperimentView:
        experiment = _find_known(submission.get("key"), caller, services)
        if experiment is not None:
            response.status_code = 200
            return experiment
        planned = _plan_and_check_room(submission, caller, services)
        if submission.get("pull"):
            planned = _pull(planned, caller, services)
        reach(Point.REQUEST_READ)
        new = make_new_experiments(submission, planned, caller)
        check_secrets(new, list_submission_owners(caller, new.project, services), services)
        _check_images(planned, caller, services)
        give_to_project(submission.get("snapshot") or "", planned.spec.project, caller, services)
        return _store_submission(new, caller, services, response)

    @router.post("/experiments/check", status_code=204, response_class=Response)
    def check(submission: Submission, caller: CallerOf) -> Response:
        planned = _plan_and_check_room(submission, caller, services)
        new = make_new_experiments(submission, planned, caller)
        check_secrets(new, list_submission_owners(caller, new.project, services), services)
        _check_images(planned, caller, services)
        return Response(status_code=204)

    @router.post("/tensorboards", status_code=201, responses=_KNOWN_KEY)
    def submit_tensorboard(request: TensorBoardRequest, caller: CallerOf, response: Response) -> wire.ExperimentView:
        check_text(request)
        experiment = _find_known(request.get("key"), caller, services)
        if experiment is not None:
            response.status_code = 200
            return experiment
        _check_choice(request.get("executor"), services)
        submitted = make_tensorboard(request, caller, services)
        plans = [submitted.plans[0][0]]
        check_for_team(plans, (), caller, services)
        check_room(plans, services)
        return _store_submission(submitted, caller, services, response)


def _pull(planned: Planned, caller: Caller, services: Services) -> Planned:
    """Return the plans with the tags of their images resolved at the registry, with the credentials of the user."""
    owners = list_submission_owners(caller, planned.spec.project, services)
    find_login = partial(services.data.registries.find_login, owners)
    return pull_images(planned, services.hosts, find_login)


def _check_images(planned: Planned, caller: Caller, services: Services) -> None:
    """Check that the user may pull the images of the plans; see `RegistryLogins.check_access`."""
    owners = list_submission_owners(caller, planned.spec.project, services)
    templates = () if planned.search is None else tuple(plan for _, plan in planned.search.templates)
    images = dict.fromkeys(image.base for plan in (*planned.plans, *templates) for image in plan.images)
    services.data.registries.check_access(owners, images, services.hosts)


def _find_known(key: str | None, caller: Caller, services: Services) -> wire.ExperimentView | None:
    """Return what a submission with this key has made before; None: nothing.

    The server accepted it before, so it is not checked again, for example against the room on the hosts.
    """
    check_text(key)
    details = () if key is None else services.stores.experiments.find_submitted(caller.user, key)
    return show_details(details, None, services, caller) if details else None


def _store_submission(
    submitted: NewExperiments, caller: Caller, services: Services, response: Response
) -> wire.ExperimentView:
    """Store an accepted submission, unless its key is known, and wake the loop."""
    admit = admit_all
    if services.team is not None:
        check_priority(submitted, caller)
        admit = services.team.admission.admit
    details, fresh = services.stores.experiments.add_experiments(submitted, now(), services.stores.seals.seal, admit)
    reach(Point.REQUEST_STORED)
    if fresh:
        write_line(log, describe_accepted(details))
    services.loops.wake.set()
    services.loops.search_wake.set()
    response.status_code = 201 if fresh else 200
    return show_details(details, None, services, caller)


def _add_snapshot_routes(router: APIRouter, services: Services) -> None:
    snapshots = services.stores.snapshots

    @router.head("/snapshots/{digest}", responses=_NO_BODY, response_class=Response)
    def has_snapshot(digest: Digest, caller: CallerOf) -> Response:
        spaces = find_project_spaces(caller, services.hosts)
        return Response(status_code=200 if snapshots.has_snapshot(digest, spaces) else 404)

    @router.put("/snapshots/{digest}", status_code=201, response_class=Response, openapi_extra=_BINARY_BODY)
    async def put_snapshot(digest: Digest, caller: CallerOf, request: Request) -> Response:
        spaces = find_project_spaces(caller, services.hosts)
        async with make_room_for_next(services.data.disks):
            await snapshots.receive_archive(digest, request.stream(), spaces)
        return Response(status_code=201)

    @router.put("/snapshots/{digest}/manifest", openapi_extra=_BINARY_BODY)
    async def put_manifest(digest: Digest, caller: CallerOf, request: Request) -> wire.MissingContents:
        data = await read_manifest_body(request.stream())
        spaces = find_project_spaces(caller, services.hosts)
        async with make_room_for_next(services.data.disks):
            return {"missing": await asyncio.to_thread(snapshots.receive_manifest, digest, data, spaces)}

    @router.post("/snapshots/{digest}/contents", openapi_extra=_BINARY_BODY)
    async def post_contents(digest: Digest, caller: CallerOf, request: Request) -> wire.MissingContents:
        spaces = find_project_spaces(caller, services.hosts)
        async with make_room_for_next(services.data.disks):
            return {"missing": await snapshots.receive_contents(digest, request.stream(), spaces)}

    @router.post("/packs/{name}", status_code=204, response_class=Response)
    async def take_pack(name: PackName, caller: CallerOf) -> Response:
        async with make_room_for_next(services.data.disks):
            await asyncio.to_thread(snapshots.take_pack, name, find_project_spaces(caller, services.hosts))
        return Response(status_code=204)


def _plan_and_check_room(submission: wire.Submission, caller: Caller, services: Services) -> Planned:
    """Return the plans, after checking the user's choice of an executor and the room on the hosts."""
    planned = plan_submission(submission, caller, services)
    _check_choice(submission.get("executor"), services)
    check_room(planned.list_plans(), services, list_passed(planned.spec.train))
    return planned


def _check_choice(executor: str | None, services: Services) -> None:
    """Check the user's choice of an executor, against the hosts as they are now."""
    wait_for_pool_file(services)
    check_choice(executor, services.hosts)
    wait_for_any_host(services.hosts, services.loops.passes)


def add_capsule_routes(router: APIRouter, services: Services) -> None:
    """Add the capsule of an experiment; GET /snapshots, which sends a project's files; and /reruns/check, which names
    the parts of a run that are no longer available.
    """

    @router.get("/experiments/{name}/capsule")
    def read_capsule(name: Name, caller: CallerOf) -> wire.CapsuleView:
        detail = find_details(parse_id(name), caller, services.stores)[0]
        if detail.experiment.plan.companion is not None:
            raise UsageError(
                f"{name} trains nothing, and has no capsule", "name an experiment that `riseml train` made"
            )
        capsule = services.data.capsules.show_capsule(detail.experiment, detail.config)
        return {"capsule": capsule, "config": detail.config}

    @router.get("/snapshots/{digest}", response_class=StreamingResponse, responses=_TAR_ANSWER)
    def read_snapshot(digest: Digest, caller: CallerOf) -> StreamingResponse:
        return StreamingResponse(write_tar(find_files(digest, caller, services)), media_type="application/x-tar")

    @router.post("/reruns/check")
    def check_rerun(needs: Needs, caller: CallerOf) -> wire.MissingParts:
        check_text(needs)
        missing: list[wire.MissingPart] = []
        code = needs.get("code")
        if code and not services.stores.snapshots.has_snapshot(code, find_project_spaces(caller, services.hosts)):
            missing.append({"part": "code", "message": f"the project's files {code[:12]} are not on the server"})
        owners = list_submission_owners(caller, caller.project or "", services)
        for image in needs.get("images", []):
            login = services.data.registries.find_login(owners, image["image"])
            if why := find_missing_image(services.hosts, image["image"], image["digest"], login):
                missing.append({"part": "image", "message": why})
        below = PurePosixPath() if services.hosts.rules is None else find_user_folder(caller.user)
        if lost := find_missing_data(services.hosts, needs.get("data", []), below):
            missing.append({"part": "data", "message": lost})
        return {"missing": missing}


def find_files(digest: str, caller: Caller, services: Services) -> ProjectFiles:
    """Return a project's files.

    Raises:
        NotFound: the server does not have them, or the caller neither has sent them nor sees an experiment with them.
    """
    stores = services.stores
    is_seen = sees_everything(caller) or stores.experiments.sees_snapshot(caller, digest)
    spaces = None if is_seen else find_project_spaces(caller, services.hosts)
    files = stores.snapshots.find_files(digest, spaces)
    if files is None:
        raise NotFound(
            f"the project's files {digest[:12]} are not on the server any more",
            "a capsule in an output folder has them when they are small: `riseml checkout OUTPUT/.riseml DIR`",
        )
    return files
