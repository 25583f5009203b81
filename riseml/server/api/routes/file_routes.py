"""The routes of files in `data://` and `output://`, and of whole outputs: list, read, write, copy and remove."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from riseml import wire
from riseml.base.errors import Conflict, NotFound, Refused, RisemlError, TooSlow, UsageError
from riseml.base.names import CanonicalId, experiment_name, parse_id
from riseml.base.records import dataclass
from riseml.control.permissions import may_see
from riseml.control.visible_names import name_seen
from riseml.files.storage_files import MOST_ENTRIES, FileWriter, ListRequest, StorageFiles
from riseml.job_programs.folder_contents import FileUpload
from riseml.job_programs.folder_listing import Page
from riseml.job_programs.folder_paths import FileInfo
from riseml.model import Caller, Environment, Experiment
from riseml.server.api.callers import CallerOf
from riseml.server.api.output_rules import check_removable
from riseml.server.api.parameters import read_group
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import check_changeable, find_details, find_single_experiment
from riseml.server.api.views.record_views import show_time
from riseml.server.api.views.saved_views import show_saved, show_saved_summary
from riseml.server.clock import now
from riseml.server.data.file_places import open_data, open_output, open_team_data
from riseml.server.data.team_data import SpacePath, check_access, find_space, hide_mounted
from riseml.server.hosts.host_set import HostSet
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services, Stores

_CONTENT_PROOF = 33  # bytes after a content: one that says whether it is complete, and its SHA-256
_WRITE_BUFFER = 1 << 20  # bytes that are written at once
_UPLOAD_PATIENCE = 600.0  # seconds within which a client must send something
_LARGEST_FILE = 1 << 50  # bytes of a file
_PAGE_NUMBERS = 50  # experiments and sets that one request examines
_PAGE_SECONDS = 10.0  # that one request takes
_REMOVAL_SECONDS = 60.0  # that one removal takes; the client asks again
_MOST_NUMBER = 999_999_999

_BINARY_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}
_BINARY_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PlaceQuery:
    """A path in a storage."""

    root: Literal["data", "output"]
    of: Annotated[str, Query(max_length=200, description="ID of the experiment, with root=output")] = ""
    path: Annotated[str, Query(max_length=4096)] = ""


PlaceQuery = Annotated[_PlaceQuery, Depends(read_group(_PlaceQuery))]


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
    size: Annotated[int, Query(ge=0, le=_LARGEST_FILE)]
    offset: Annotated[int, Query(ge=0, le=_LARGEST_FILE)] = 0
    mtime: Annotated[int, Query(ge=0, le=2**62)] = 0
    executable: bool = False


@dataclass(frozen=True, slots=True)
class _OutputQuery:
    """The conditions for outputs that a clean-up may remove."""

    older: Annotated[int, Query(ge=0, le=400_000_000, description="seconds since its experiment ended")] = 0
    larger: Annotated[int, Query(ge=0, le=2**60, description="bytes")] = 0
    project: Annotated[str | None, Query(max_length=128)] = None
    before: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER)] = None
    sub: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="also of set `before`, after this one")] = None


def add_file_routes(router: APIRouter, services: Services) -> None:
    """Add everything below /files."""
    _add_changing_routes(router, services)

    @router.get("/files", response_model=wire.FileListing)
    def list_files(
        caller: CallerOf, place: PlaceQuery, page: Annotated[_ListingQuery, Depends(read_group(_ListingQuery))]
    ) -> Response:
        opened = _open_storage(place, caller, services)
        listing = opened.files.list_files(ListRequest(opened.path, page.after or None, page.limit, page.deep))
        if opened.named is not None:
            listing = hide_mounted(opened.named, listing)
        return Response(json.dumps(_show_page(listing)), media_type="application/json")

    @router.get("/files/content", response_class=StreamingResponse, responses=_BINARY_ANSWER)
    def read_file(
        caller: CallerOf,
        place: PlaceQuery,
        start: Annotated[int, Query(ge=0, le=_LARGEST_FILE)] = 0,
        etag: Annotated[str, Query(max_length=200)] = "",
    ) -> StreamingResponse:
        opened = _open_storage(place, caller, services)
        return _send_content(opened.files.read_file(opened.path, start, etag or None), start)

    @router.put("/files/content", openapi_extra=_BINARY_BODY)
    async def write_file(
        caller: CallerOf,
        place: PlaceQuery,
        upload: Annotated[_UploadQuery, Depends(read_group(_UploadQuery))],
        request: Request,
    ) -> wire.FileView:
        opened = await asyncio.to_thread(_open_storage, place, caller, services, writes=True)
        file = FileUpload(opened.path, upload.upload, upload.size, upload.offset, upload.mtime, upload.executable)
        return _show_file(await _receive_content(await asyncio.to_thread(opened.files.write_file, file), request))


def _add_changing_routes(router: APIRouter, services: Services) -> None:
    @router.post("/files/folder")
    def make_folder(caller: CallerOf, place: PlaceQuery) -> wire.FileView:
        opened = _open_storage(place, caller, services, writes=True)
        opened.files.make_folder(opened.path)
        return _show_file(opened.files.list_files(ListRequest(opened.path, limit=0)).at)

    @router.post("/files/link")
    def make_link(
        caller: CallerOf, place: PlaceQuery, target: Annotated[str, Query(min_length=1, max_length=4096)]
    ) -> wire.FileView:
        opened = _open_storage(place, caller, services, writes=True)
        return _show_file(opened.files.make_link(opened.path, target))

    @router.post("/files/remove")
    def remove_files(caller: CallerOf, place: PlaceQuery) -> wire.RemovalView:
        opened = _open_storage(place, caller, services, writes=True)
        if not opened.path:
            raise UsageError("riseml does not remove the root of a storage", "name what is in it")
        if place.root == "output":
            check_removable(parse_id(place.of), caller, services.stores, opened.files)
        removed = opened.files.remove_files(opened.path, MOST_ENTRIES)
        return {"path": place.path, **removed._asdict()}  # type: ignore[typeddict-item]  # the fields have these names


@dataclass(frozen=True, slots=True)
class _OpenedPlace:
    """A path in opened files."""

    files: StorageFiles
    path: str  # below their root; empty: the root
    named: SpacePath | None = None  # in the data of a team


def _open_storage(place: _PlaceQuery, caller: Caller, services: Services, *, writes: bool = False) -> _OpenedPlace:
    if place.root == "data" and services.hosts.rules is not None:
        named = find_space([name for name in place.path.split("/") if name], caller.user)
        check_access(named.space, caller, writes=writes)
        files = open_team_data(services.hosts, named.space, writes=writes)
        return _OpenedPlace(files, "/".join(named.below), named)
    if place.root == "data":
        return _OpenedPlace(open_data(services.hosts, caller.owner, writes=writes), place.path)
    canonical_id = parse_id(place.of)
    if canonical_id.job is not None:
        raise UsageError(f"{canonical_id} is a job", f"output://{canonical_id.number} has the files of all jobs")
    details = find_details(canonical_id, caller, services.stores)
    if writes:
        check_changeable(caller, details)
    members = [detail.experiment for detail in details]
    return _OpenedPlace(open_output(services.hosts, members, canonical_id), place.path)


def _send_content(pieces: Iterator[bytes], start: int) -> StreamingResponse:
    size, etag = next(pieces).decode().split()
    headers = {
        "ETag": f'"{etag}"',
        "X-Riseml-Size": size,
        "Content-Length": str(int(size) - start + _CONTENT_PROOF),
    }
    return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)


async def _receive_content(writer: FileWriter, request: Request) -> FileInfo:
    """Write a body into a file. When the body is cut, the bytes that arrived stay for the next try."""
    try:
        buffer = bytearray()
        stream = request.stream()
        while True:
            async with asyncio.timeout(_UPLOAD_PATIENCE):
                piece = await anext(stream, None)
            if piece is not None:
                buffer += piece
            if len(buffer) >= _WRITE_BUFFER or (piece is None and buffer):
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


def _show_file(entry: FileInfo) -> wire.FileView:
    return entry._asdict()  # type: ignore[return-value]  # the fields have these names


def add_output_routes(router: APIRouter, services: Services) -> None:
    """Add /kept, the kept outputs, and /outputs, those that a clean-up may remove; also the routes of one experiment's
    output.
    """

    @router.get("/kept")
    def list_kept(caller: CallerOf) -> wire.KeptView:
        return _show_kept(caller, services.stores)

    @router.post("/experiments/{name}/keep")
    def keep_output(name: Name, caller: CallerOf, keep: bool = True) -> wire.KeptView:  # noqa: FBT001, FBT002  # a query parameter
        ids = [detail.experiment.id for detail in find_details(parse_id(name), caller, services.stores)]
        if keep:
            services.stores.kept_outputs.keep(ids, now())
        else:
            services.stores.kept_outputs.release(ids)
        return _show_kept(caller, services.stores)

    @router.get("/outputs")
    def list_outputs(
        caller: CallerOf, query: Annotated[_OutputQuery, Depends(read_group(_OutputQuery))]
    ) -> wire.OutputPage:
        check_text(query.project)
        return _find_outputs(query, caller, services)

    @router.post("/experiments/{name}/output/remove")
    def remove_output(name: Name, caller: CallerOf) -> wire.OutputView:
        canonical_id = parse_id(name)
        experiment = find_single_experiment(canonical_id, caller, services.stores)
        check_removable(canonical_id, caller, services.stores)
        return _remove_output(experiment, services.hosts)


def _show_kept(caller: Caller, stores: Stores) -> wire.KeptView:
    experiments = [
        experiment
        for identity in stores.kept_outputs.load_kept()
        for experiment in [stores.experiments.get_experiment(identity).experiment]
        if experiment.owner.user == caller.user and may_see(caller, caller.user, experiment.team_project)
    ]
    return {
        "kept": [
            _name_experiment(experiment)
            for experiment in sorted(experiments, key=lambda experiment: (experiment.number, experiment.sub or 0))
        ]
    }


def _find_outputs(query: _OutputQuery, caller: Caller, services: Services) -> wire.OutputPage:
    """Return a page of outputs, of the newest experiments first; a large set takes several pages."""
    before = query.before if query.before is None or query.sub is None else query.before + 1
    end = time.monotonic() + _PAGE_SECONDS
    kept_ids = services.stores.kept_outputs.load_kept()
    details = services.stores.experiments.list_experiments(
        caller.user,
        ended=True,
        project=query.project,
        limit=_PAGE_NUMBERS,
        before=before,
        companions=False,
        caller=caller,
    )
    experiments = sorted(
        (detail.experiment for detail in details), key=lambda experiment: (-experiment.number, experiment.sub or 0)
    )
    latest = now() - timedelta(seconds=query.older)
    outputs: list[wire.OutputView] = []
    for experiment in experiments:
        if experiment.number == query.before and (experiment.sub or 0) <= (query.sub or 0):
            continue  # it was on an earlier page
        is_old = experiment.ended_at is not None and experiment.ended_at <= latest
        if experiment.closed and is_old and experiment.id not in kept_ids:
            outputs += _measure_output(experiment, query.larger, services.hosts)
        if time.monotonic() > end:
            return {"outputs": outputs, "next": experiment.number, "next_sub": experiment.sub}
    numbers = {experiment.number for experiment in experiments}
    return {"outputs": outputs, "next": min(numbers) if len(numbers) == _PAGE_NUMBERS else None, "next_sub": None}


def _measure_output(experiment: Experiment, larger: int, hosts: HostSet) -> Sequence[wire.OutputView]:
    """Return an output with its size; nothing when there is none, or when it is too small."""
    view = _make_output_view(experiment)
    try:
        files = _open_output(experiment, hosts)
        after: str | None = None
        while True:
            page = files.list_files(ListRequest("", after, MOST_ENTRIES, deep=True))
            view["files"] += sum(entry.kind != "folder" for entry in page.entries)
            view["size"] += sum(entry.size for entry in page.entries)
            after = page.next
            if after is None:
                return [view] if view["files"] and view["size"] >= larger else []
    except NotFound:
        return []
    except RisemlError as error:
        view["problem"] = error.message
        return [view]


def _remove_output(experiment: Experiment, hosts: HostSet) -> wire.OutputView:
    """Remove the content of an output folder; the folder itself stays."""
    view = _make_output_view(experiment)
    end = time.monotonic() + _REMOVAL_SECONDS
    files = _open_output(experiment, hosts)
    while time.monotonic() < end:
        entries = files.list_files(ListRequest("", limit=1)).entries
        if not entries:
            view["removed"] = True
            break
        part = files.remove_files(entries[0].path, MOST_ENTRIES)
        view["files"] += part.files
        view["size"] += part.size
    text = f"output of {_name_experiment(experiment)} removed: {view['files']} files, {view['size']:,} bytes"
    write_line(log, LogLine(text))
    return view


def _open_output(experiment: Experiment, hosts: HostSet) -> StorageFiles:
    return open_output(hosts, [experiment], CanonicalId(experiment.number, experiment.sub))


def _make_output_view(experiment: Experiment) -> wire.OutputView:
    return {
        "experiment": _name_experiment(experiment),
        "project": experiment.project,
        "ended_at": show_time(experiment.ended_at),
        "size": 0,
        "files": 0,
        "removed": False,
        "problem": None,
    }


def _name_experiment(experiment: Experiment) -> str:
    return experiment_name(experiment.number, experiment.sub)


def add_saved_routes(router: APIRouter, services: Services) -> None:
    """Add GET /experiments/{name}/saved, which lists what is in the object store, and POST /experiments/{name}/save,
    which copies an output now.
    """

    @router.get("/experiments/{name}/saved")
    def read_saved(name: Name, caller: CallerOf) -> wire.SavedView:
        return _show_saved_output(find_single_experiment(parse_id(name), caller, services.stores), name, caller)

    @router.post("/experiments/{name}/save")
    def save_output(name: Name, caller: CallerOf, request: wire.SaveRequest | None = None) -> wire.SavedView:
        experiment = find_single_experiment(parse_id(name), caller, services.stores)
        if experiment.plan.policy.save is not None and experiment.started_at is None:
            raise Refused(f"no job of {name} has run, and there is nothing to save", "`riseml status` shows its state")
        view = _show_saved_output(experiment, name, caller)
        services.data.saver.start_save(experiment, _list_keys(request))
        return {**view, "state": "saving"}

    def _show_saved_output(experiment: Experiment, name: str, caller: Caller) -> wire.SavedView:
        summary = show_saved_summary(experiment, services.data.saver)
        if summary is None:
            raise NotFound(
                f"{name} saves nothing: its riseml.yml has no `save`",
                f"`riseml cp output://{name} DIR` copies its output",
            )
        return show_saved(experiment, name_seen(caller, experiment), services.data.saver, summary)


def _list_keys(request: wire.SaveRequest | None) -> Environment:
    """Return the keys of the user as variables; none when the request has none."""
    if request is None or "keys" not in request:
        return ()
    return tuple((name, str(value)) for name, value in request["keys"].items())
