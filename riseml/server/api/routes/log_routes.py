"""The route of logs: a stream of lines and changes of state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from riseml.base.errors import UsageError
from riseml.base.names import parse_id
from riseml.base.records import dataclass
from riseml.base.settings import HEARTBEAT_HEADER, MOST_TAIL
from riseml.model import Experiment
from riseml.server.api.merged_log.log_check import prepare_log
from riseml.server.api.merged_log.log_stream import stream_entries
from riseml.server.api.merged_log.set_growth import SetGrowth
from riseml.server.api.merged_log.stream_cursor import check_stream_cursor, parse_stream_cursor
from riseml.server.api.merged_log.stream_request import LONGEST_HEARTBEAT, StreamRequest
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.named_experiments import find_details
from riseml.server.api.views.record_views import show_time
from riseml.server.attendance import Attendance
from riseml.server.services import Services

_NDJSON: dict[int | str, dict[str, Any]] = {
    200: {"description": "one `Entry` a line", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
}


@dataclass(frozen=True, slots=True)
class _LogParameters:
    """The query of a log."""

    follow: bool = True
    cursor: Annotated[str, Query(max_length=64_000)] = ""
    tail: Annotated[int | None, Query(ge=0, le=MOST_TAIL)] = None
    since: datetime | None = None
    batch: bool = False
    closed: bool = True
    reports: bool = False
    heartbeat: Annotated[float, Query(ge=0.5, le=LONGEST_HEARTBEAT)] = LONGEST_HEARTBEAT


def add_log_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/logs."""

    @router.get("/experiments/{name}/logs", response_class=StreamingResponse, responses=_NDJSON)
    def read_logs(name: Name, query: Annotated[_LogParameters, Depends()]) -> StreamingResponse:
        canonical_id = parse_id(name)
        _check_since(query.since)
        details = find_details(canonical_id, services)
        for detail in details:
            prepare_log(detail.experiment, services.logs)
        ids = tuple(detail.experiment.id for detail in details)
        growth = None if canonical_id.sub is not None else _find_growth(details[0].experiment, services)
        positions = parse_stream_cursor(query.cursor, len(ids), grows=growth is not None)
        check_stream_cursor(query.cursor, zip(ids, positions, strict=True), services.logs)
        parts = (query.tail, query.since, query.batch, growth, query.closed, query.reports, query.heartbeat)
        request = StreamRequest(canonical_id, ids, query.follow, positions, *parts)
        entries = stream_entries(request, services.experiments, services.logs, services.notifier)
        if query.follow and details[0].experiment.plan.companion is not None:
            entries = _attend_companion(services.attendance, ids[0], entries)
        headers = {HEARTBEAT_HEADER: f"{query.heartbeat:g}"}
        return StreamingResponse(entries, media_type="application/x-ndjson", headers=headers)


async def _attend_companion(
    attendance: Attendance, experiment: int, entries: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Pass a log on. A client that follows the log counts as a user of the companion."""
    with attendance.attend(experiment):
        async for entry in entries:
            yield entry


def _find_growth(experiment: Experiment, services: Services) -> SetGrowth | None:
    """Return the growth of an experiment's set; None when the set has no search."""
    set_id = experiment.set_id
    if set_id is None or not services.searches.has_search(set_id):
        return None
    return SetGrowth(services.searches, services.metrics, set_id)


def _check_since(since: datetime | None) -> None:
    """Refuse a moment that UTC cannot express: the first and the last day of the calendar, east and west of it.

    Raises:
        UsageError: it is such a moment.
    """
    try:
        show_time(since)
    except OverflowError:
        raise UsageError(f"since is {since}, which is beyond the calendar", "leave it out to read everything") from None
