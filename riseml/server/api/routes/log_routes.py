"""The routes of logs: a stream of lines and changes of state, lines by number, and the search for a text."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from riseml import wire
from riseml.base.errors import RisemlError, Unauthenticated, UsageError
from riseml.base.names import parse_id
from riseml.base.records import dataclass
from riseml.base.settings import HEARTBEAT_HEADER, MOST_TAIL
from riseml.base.states import SENTENCES
from riseml.control.visible_names import name_seen
from riseml.model import Caller, Experiment
from riseml.server.api.callers import CallerOf
from riseml.server.api.merged_log.log_check import prepare_log
from riseml.server.api.merged_log.log_entries import format_moment, name_stream
from riseml.server.api.merged_log.log_stream import stream_entries
from riseml.server.api.merged_log.set_growth import SetGrowth
from riseml.server.api.merged_log.stream_cursor import check_stream_cursor, parse_stream_cursor
from riseml.server.api.merged_log.stream_request import LONGEST_HEARTBEAT, StreamRequest
from riseml.server.api.parameters import read_group
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import find_details, find_single_experiment
from riseml.server.api.views.record_views import show_time
from riseml.server.attendance import Attendance
from riseml.server.gate.request_caller import ask_for_caller
from riseml.server.services import Services, Stores
from riseml.store.changes import ChangeLog
from riseml.store.experiments import StateEvent
from riseml.store.logs.levels import LogLevel
from riseml.store.logs.line_index import LineIndexes, NumberedOutput, Selection

SIGHT_PERIOD = 2.0
"""Seconds after which the rights of who follows the log of another user's experiment are looked at again."""

_MOST_LINES = 5_000  # lines of one page
_MOST_LINE_NUMBER = 2**40

_NDJSON: dict[int | str, dict[str, Any]] = {
    200: {"description": "one `Entry` a line", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
}

log = logging.getLogger(__name__)

First = Annotated[
    int, Query(ge=-_MOST_LINE_NUMBER, le=_MOST_LINE_NUMBER, description="0 is the first line, -1 the last")
]
Level = Annotated[
    Literal["error", "warning", "info"] | None,
    Query(description="only lines of this level and more serious ones; line numbers count only these"),
]


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
    def read_logs(
        name: Name,
        caller: CallerOf,
        query: Annotated[_LogParameters, Depends(read_group(_LogParameters))],
        request: Request,
    ) -> StreamingResponse:
        canonical_id = parse_id(name)
        _check_since(query.since)
        details = find_details(canonical_id, caller, services.stores)
        for detail in details:
            prepare_log(detail.experiment, services.stores.logs)
        ids = tuple(detail.experiment.id for detail in details)
        growth = (
            None if canonical_id.sub is not None else _find_growth(details[0].experiment, caller.user, services.stores)
        )
        positions = parse_stream_cursor(query.cursor, len(ids), grows=growth is not None)
        check_stream_cursor(query.cursor, zip(ids, positions, strict=True), services.stores.logs)
        parts = (query.tail, query.since, query.batch, growth, query.closed, query.reports, query.heartbeat)
        stream = StreamRequest(canonical_id, ids, query.follow, positions, *parts, reader=caller.user)
        entries = stream_entries(stream, services.stores.experiments, services.stores.logs, services.loops.notifier)
        if query.follow and details[0].experiment.plan.companion is not None:
            entries = _attend_companion(services.watchers.attendance, ids[0], entries)
        if details[0].experiment.owner.user != caller.user or caller.project is not None:
            changes = services.stores.experiments.changes
            entries = pass_while_seen(entries, lambda: sees_experiment(request, ids[0], changes))
        headers = {HEARTBEAT_HEADER: f"{query.heartbeat:g}"}
        return StreamingResponse(entries, media_type="application/x-ndjson", headers=headers)


async def pass_while_seen(
    entries: AsyncIterator[bytes], sees: Callable[[], bool], period: float = SIGHT_PERIOD
) -> AsyncIterator[bytes]:
    """Pass a log on for as long as the caller sees its experiment. The client of a log that ends without its last entry
    asks again, and the gate and the routes answer as they do then.

    Args:
        entries: of the log.
        sees: returns False when the caller does not see it any more; it is called in a thread, before an entry is sent.
        period: seconds for which an answer of `sees` holds.
    """
    asked_at = time.monotonic()
    async for entry in entries:
        if time.monotonic() - asked_at >= period:
            if not await asyncio.to_thread(sees):
                return
            asked_at = time.monotonic()
        yield entry


def sees_experiment(request: Request, experiment: int, changes: ChangeLog) -> bool:
    """Return True when the caller of a request sees an experiment by their rights of the moment."""
    try:
        return bool(changes.name_experiments((experiment,), ask_for_caller(request.scope)))
    except Unauthenticated:
        return False
    except RisemlError as error:
        log.warning("a log goes on, although nobody knows who may read it: %s", error.message)
        return True


async def _attend_companion(
    attendance: Attendance, experiment: int, entries: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Pass a log on. A client that follows the log counts as a user of the companion."""
    with attendance.attend(experiment):
        async for entry in entries:
            yield entry


def _find_growth(experiment: Experiment, reader: str, stores: Stores) -> SetGrowth | None:
    """Return the growth of an experiment's set, as `reader` names it; None when the set has no search."""
    set_id = experiment.set_id
    if set_id is None or not stores.searches.has_search(set_id):
        return None
    return SetGrowth(stores.searches, stores.metrics, set_id, reader)


def _check_since(since: datetime | None) -> None:
    """Refuse a moment that UTC cannot express: the first and the last day of the calendar, east and west of it.

    Raises:
        UsageError: it is such a moment.
    """
    try:
        show_time(since)
    except OverflowError:
        raise UsageError(f"since is {since}, which is beyond the calendar", "leave it out to read everything") from None


def add_line_routes(router: APIRouter, stores: Stores) -> None:
    """Add /experiments/{name}/events and /experiments/{name}/lines, and the search in them, for a page about one
    experiment.
    """
    lines = LineIndexes(stores.logs)

    @router.get("/experiments/{name}/events")
    def list_events(name: Name, caller: CallerOf) -> wire.EventList:
        canonical_id = parse_id(name)
        experiment = find_single_experiment(canonical_id, caller, stores)
        events = stores.experiments.read_events(experiment.id, 0)
        wants_all = canonical_id.job is None
        selected = [event for event in events if wants_all or (event.job is not None and canonical_id.names(event.job))]
        return {"events": [_show_event(name_seen(caller, experiment), event) for event in selected]}

    @router.get("/experiments/{name}/lines")
    def read_lines(
        name: Name,
        caller: CallerOf,
        first: First = 0,
        count: Annotated[int, Query(ge=0, le=_MOST_LINES)] = 500,
        level: Level = None,
    ) -> wire.LinePage:
        experiment, selection = _select_lines(name, caller, level, stores)
        total, outputs = lines.read_page(selection, first, count)
        source = name_seen(caller, experiment)
        return {"total": total, "lines": [_show_line(source, output) for output in outputs]}

    @router.get("/experiments/{name}/lines/matches")
    def search_lines(
        name: Name,
        caller: CallerOf,
        text: Annotated[str, Query(min_length=1, max_length=200)],
        first: Annotated[int, Query(ge=0, le=_MOST_LINE_NUMBER)] = 0,
        most: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
        level: Level = None,
    ) -> wire.LineMatches:
        check_text(text)
        total, matches, following = lines.search(_select_lines(name, caller, level, stores)[1], text, first, most)
        return {"total": total, "matches": matches, "next": following}


def _show_event(name: str, event: StateEvent) -> wire.EventView:
    return {
        "id": name if event.job is None else f"{name}.{event.job}",
        "time": format_moment(event.at),
        "state": event.state.value,
        "reason": event.reason.value,
        "sentence": SENTENCES[event.reason],
        "message": event.message,
        "attempt": event.attempt,
    }


def _select_lines(name: str, caller: Caller, level: str | None, stores: Stores) -> tuple[Experiment, Selection]:
    canonical_id = parse_id(name)
    experiment = find_single_experiment(canonical_id, caller, stores)
    prepare_log(experiment, stores.logs)
    return experiment, Selection(experiment.id, canonical_id, None if level is None else LogLevel(level))


def _show_line(name: str, output: NumberedOutput) -> wire.NumberedLine:
    line = output.line
    return {
        "number": output.number,
        "whole": output.whole,
        "id": f"{name}.{line.job}",
        "time": line.at,
        "stream": name_stream(line.stream),
        "text": line.text.decode("utf-8", "replace"),
    }
