"""The routes of files: list, read, write and remove files of `data://` and `output://`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from riseml import wire
from riseml.base.errors import Conflict, RisemlError, TooSlow, UsageError
from riseml.base.names import parse_id
from riseml.base.records import dataclass
from riseml.files.storage_files import MOST_ENTRIES, FileWriter, ListOrder, StorageFiles
from riseml.job_programs.folder_contents import Incoming
from riseml.job_programs.folder_listing import Page
from riseml.job_programs.folder_paths import Seen
from riseml.server.api.output_rules import check_removable
from riseml.server.api.views.named_experiments import find_details
from riseml.server.data.file_places import open_data, open_output
from riseml.server.services import Services

_PROOF = 33  # bytes after a content: one that says whether it is complete, and its SHA-256
_BUFFER = 1 << 20  # bytes that are written at once
_PATIENCE = 600.0  # seconds within which a client must send something
_MOST_SIZE = 1 << 50  # bytes of a file

_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@dataclass(frozen=True, slots=True)
class _PlaceQuery:
    """A path in a storage."""

    root: Literal["data", "output"]
    of: Annotated[str, Query(max_length=200, description="ID of the experiment, with root=output")] = ""
    path: Annotated[str, Query(max_length=4096)] = ""


@dataclass(frozen=True, slots=True)
class _ListingQuery:
    """A part of a listing."""

    after: Annotated[str, Query(max_length=4096)] = ""
    limit: Annotated[int, Query(ge=0, le=MOST_ENTRIES)] = 1000
    deep: bool = False


@dataclass(frozen=True, slots=True)
class _UploadQuery:
    """A file that a client sends."""

    upload: Annotated[str, Query(pattern="^[0-9a-f]{16}$")]
    size: Annotated[int, Query(ge=0, le=_MOST_SIZE)]
    offset: Annotated[int, Query(ge=0, le=_MOST_SIZE)] = 0
    mtime: Annotated[int, Query(ge=0, le=2**62)] = 0
    executable: bool = False


PlaceQuery = Annotated[_PlaceQuery, Depends()]


def add_file_routes(router: APIRouter, services: Services) -> None:
    """Add everything below /files."""
    _add_changing_routes(router, services)

    @router.get("/files", response_model=wire.FileListing)
    def list_files(place: PlaceQuery, page: Annotated[_ListingQuery, Depends()]) -> Response:
        order = ListOrder(place.path, page.after or None, page.limit, page.deep)
        listing = _open_storage(place, services).list_files(order)
        return Response(json.dumps(_show_page(listing)), media_type="application/json")

    @router.get("/files/content", response_class=StreamingResponse, responses=_CONTENT)
    def read_file(
        place: PlaceQuery,
        start: Annotated[int, Query(ge=0, le=_MOST_SIZE)] = 0,
        etag: Annotated[str, Query(max_length=200)] = "",
    ) -> StreamingResponse:
        return _send_content(_open_storage(place, services).read_file(place.path, start, etag or None), start)

    @router.put("/files/content", openapi_extra=_BODY)
    async def write_file(
        place: PlaceQuery, upload: Annotated[_UploadQuery, Depends()], request: Request
    ) -> wire.FileView:
        order = Incoming(place.path, upload.upload, upload.size, upload.offset, upload.mtime, upload.executable)
        files = await asyncio.to_thread(_open_storage, place, services, writes=True)
        return _show_file(await _receive_content(await asyncio.to_thread(files.write_file, order), request))


def _add_changing_routes(router: APIRouter, services: Services) -> None:
    @router.post("/files/folder")
    def make_folder(place: PlaceQuery) -> wire.FileView:
        files = _open_storage(place, services, writes=True)
        files.make_folder(place.path)
        return _show_file(files.list_files(ListOrder(place.path, limit=0)).at)

    @router.post("/files/link")
    def make_link(place: PlaceQuery, target: Annotated[str, Query(min_length=1, max_length=4096)]) -> wire.FileView:
        return _show_file(_open_storage(place, services, writes=True).make_link(place.path, target))

    @router.post("/files/remove")
    def remove_files(place: PlaceQuery) -> wire.RemovalView:
        if not place.path:
            raise UsageError("riseml does not remove the root of a storage", "name what is in it")
        files = _open_storage(place, services, writes=True)
        if place.root == "output":
            check_removable(parse_id(place.of), services, files)
        removed = files.remove_files(place.path, MOST_ENTRIES)
        return {"path": place.path, **removed._asdict()}  # type: ignore[typeddict-item]  # the fields have these names


def _open_storage(place: _PlaceQuery, services: Services, *, writes: bool = False) -> StorageFiles:
    if place.root == "data":
        return open_data(services.hosts, services.info.owner, writes=writes)
    canonical_id = parse_id(place.of)
    if canonical_id.job is not None:
        raise UsageError(f"{canonical_id} is a job", f"output://{canonical_id.number} has the files of all jobs")
    members = [detail.experiment for detail in find_details(canonical_id, services)]
    return open_output(services.hosts, members, canonical_id)


def _send_content(pieces: Iterator[bytes], start: int) -> StreamingResponse:
    size, etag = next(pieces).decode().split()
    headers = {
        "ETag": f'"{etag}"',
        "X-Riseml-Size": size,
        "Content-Length": str(int(size) - start + _PROOF),
    }
    return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)


async def _receive_content(writer: FileWriter, request: Request) -> Seen:
    """Write a body into a file. When the body is cut, the bytes that arrived stay for the next try."""
    try:
        buffer = bytearray()
        stream = request.stream()
        while True:
            async with asyncio.timeout(_PATIENCE):
                piece = await anext(stream, None)
            if piece is not None:
                buffer += piece
            if len(buffer) >= _BUFFER or (piece is None and buffer):
                await asyncio.to_thread(writer.write, bytes(buffer))
                buffer.clear()
            if piece is None:
                return await asyncio.to_thread(writer.finish)
    except ClientDisconnect:
        raise Conflict("the file was not sent completely; nothing was changed", "copy it again") from None
    except TimeoutError:
        raise TooSlow("nothing came of the file for ten minutes; nothing was changed", "copy it again") from None
    except RisemlError:
        writer.discard()
        raise
    finally:
        writer.close()


def _show_page(page: Page) -> wire.FileListing:
    return {"at": _show_file(page.at), "entries": [_show_file(entry) for entry in page.entries], "next": page.next}


def _show_file(entry: Seen) -> wire.FileView:
    return entry._asdict()  # type: ignore[return-value]  # the fields have these names
