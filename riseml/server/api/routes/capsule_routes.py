"""The routes for repeating a run: capsules, the files of a project, and the parts that are no longer available."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi.responses import StreamingResponse

from riseml import wire
from riseml.base.errors import NotFound, UsageError
from riseml.base.names import parse_id
from riseml.files.archives.project_files import ProjectFiles, write_tar
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.routes.submission_routes import Digest
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import find_details
from riseml.server.hosts.missing_parts import find_missing_data, find_missing_image
from riseml.server.services import Services

Needs = Annotated[wire.RerunNeeds, Body()]
_TAR: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}}}
}


def add_capsule_routes(router: APIRouter, services: Services) -> None:
    """Add the capsule of an experiment, GET /snapshots and /reruns/check."""

    @router.get("/experiments/{name}/capsule")
    def read_capsule(name: Name) -> wire.CapsuleView:
        detail = find_details(parse_id(name), services)[0]
        if detail.experiment.plan.companion is not None:
            raise UsageError(
                f"{name} trains nothing, and has no capsule", "name an experiment that `riseml train` made"
            )
        capsule = services.capsules.show_capsule(detail.experiment, detail.config)
        return {"capsule": capsule, "config": detail.config}

    @router.get("/snapshots/{digest}", response_class=StreamingResponse, responses=_TAR)
    def read_snapshot(digest: Digest) -> StreamingResponse:
        return StreamingResponse(write_tar(find_files(digest, services)), media_type="application/x-tar")

    @router.post("/reruns/check")
    def check_rerun(needs: Needs) -> wire.MissingParts:
        check_text(needs)
        missing: list[wire.MissingPart] = []
        code = needs.get("code")
        if code and not services.snapshots.has_snapshot(code):
            missing.append({"part": "code", "message": f"the project's files {code[:12]} are not on the server"})
        for image in needs.get("images", []):
            if why := find_missing_image(services.hosts, image["image"], image["digest"]):
                missing.append({"part": "image", "message": why})
        if lost := find_missing_data(services.hosts, needs.get("data", [])):
            missing.append({"part": "data", "message": lost})
        return {"missing": missing}


def find_files(digest: str, services: Services) -> ProjectFiles:
    """Return a project's files.

    Raises:
        NotFound: the server does not have them.
    """
    files = services.snapshots.find_files(digest)
    if files is None:
        raise NotFound(
            f"the project's files {digest[:12]} are not on the server any more",
            "a capsule in an output folder has them when they are small: `riseml checkout OUTPUT/.riseml DIR`",
        )
    return files
