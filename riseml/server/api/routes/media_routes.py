"""The routes of media: what an experiment has, and the content of one file, also parts of it as players ask for them.

An answer never becomes a page: its type comes from a list of endings, in which SVG and HTML are text, `nosniff` keeps
browsers from guessing, and `sandbox` takes every right from what is opened all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from riseml import wire
from riseml.base.errors import NotFound, Refused, UsageError
from riseml.base.names import parse_id
from riseml.files.media_files import FOLDER, LARGEST, MOST_ENTRIES, TYPES, group_media, read_media_path
from riseml.files.storage_files import ListRequest, StorageFiles
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import find_single_experiment
from riseml.server.data.file_places import open_output
from riseml.server.services import Services

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
_SAFE_HEADERS = {
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-store",
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
_CONTENT: dict[str, Any] = {
    kind.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}} for kind in TYPES
}
_CONTENT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": _CONTENT},
    206: {"description": "the part that `Range` names", "content": _CONTENT},
    416: {"description": "the file has no such part"},
}


def add_media_routes(router: APIRouter, services: Services) -> None:
    """Add GET /experiments/{name}/media, which lists, and /experiments/{name}/media/content."""

    @router.get("/experiments/{name}/media")
    def list_media(name: Name, caller: CallerOf) -> wire.MediaView:
        files = _open_files(name, caller, services)
        view: wire.MediaView = {"id": name, "media": [], "left_out": 0, "more": False}
        try:
            page = files.list_files(ListRequest(FOLDER, limit=MOST_ENTRIES, deep=True))
        except NotFound:
            return view
        series, view["left_out"] = group_media(page.entries)
        view["more"] = page.next is not None
        for each in series:
            items: list[wire.MediaItem] = [
                {"step": file.step, "path": info.path, "size": info.size, "etag": info.etag}
                for file, info in each.entries
            ]
            view["media"].append({"name": each.name, "kind": each.kind, "items": items})
        return view

    @router.get("/experiments/{name}/media/content", response_class=Response, responses=_CONTENT_ANSWERS)
    def read_content(
        name: Name,
        caller: CallerOf,
        path: Annotated[str, Query(max_length=4096, description="below OUTPUT_DIR/media: `samples/400.png`")],
        part: Annotated[str, Header(alias="Range", max_length=200)] = "",
    ) -> Response:
        check_text(path)
        files = _open_files(name, caller, services)
        file = read_media_path(path)
        if file is None:
            raise UsageError(
                f"{path[:80]!r} is no path of media", f"`riseml media {name}` lists them; `riseml cat` prints any file"
            )
        at = files.list_files(ListRequest(f"{FOLDER}/{path}", limit=0)).at
        if at.kind != "file":
            raise NotFound(f"{path} is not a file", f"`riseml media {name}` lists them")
        if at.size > LARGEST:
            copy = f"`riseml cp output://{name}/{FOLDER}/{path} .` copies it"
            raise Refused(f"{path} has {at.size:,} bytes; media have at most {LARGEST:,}", copy)
        chosen = _choose_part(part, at.size)
        headers = {**_SAFE_HEADERS, "ETag": f'"{at.etag}"'}
        if chosen is None:
            headers["Content-Range"] = f"bytes */{at.size}"
            return Response(status_code=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=headers)
        start, end = chosen
        headers["Content-Length"] = str(end - start)
        if part and (start, end) != (0, at.size):
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{at.size}"
        status = HTTPStatus.PARTIAL_CONTENT if "Content-Range" in headers else HTTPStatus.OK
        pieces = files.read_file(f"{FOLDER}/{path}", start, at.etag)
        next(pieces)  # the header; a file that changed meanwhile is refused before the answer begins
        return StreamingResponse(_cut(pieces, end - start), status, headers, file.type)


def _open_files(name: str, caller: Caller, services: Services) -> StorageFiles:
    canonical_id = parse_id(name)
    experiment = find_single_experiment(canonical_id, caller, services.stores)
    return open_output(services.hosts, [experiment], canonical_id)


def _choose_part(header: str, size: int) -> tuple[int, int] | None:
    """Return where the wanted part of a file begins and ends; None: the file has no such part. A header that is not one
    range of bytes asks for everything, as HTTP has it.
    """
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or match[1] == match[2] == "":
        return 0, size
    if not match[1]:
        return (max(0, size - int(match[2])), size) if size and int(match[2]) else None
    start = int(match[1])
    end = min(size, int(match[2]) + 1) if match[2] else size
    return (start, end) if start < end else None


def _cut(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:size]
        size -= len(piece)
        if size <= 0:
            return
