"""The routes of a page about one experiment: its events, lines of its log by number, and the search for a text."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from riseml import wire
from riseml.base.names import experiment_name, parse_id
from riseml.base.states import SENTENCES
from riseml.model import Experiment
from riseml.server.api.merged_log.log_check import prepare_log
from riseml.server.api.merged_log.log_entries import format_moment, name_stream
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import find_single_experiment
from riseml.server.services import Services
from riseml.store.experiments import StateEvent
from riseml.store.logs.levels import LogLevel
from riseml.store.logs.line_index import LineIndexes, NumberedOutput, Selection

_MOST_LINES = 5_000  # lines of one page
_MOST_NUMBER = 2**40

First = Annotated[int, Query(ge=-_MOST_NUMBER, le=_MOST_NUMBER, description="0 is the first line, -1 the last")]
Level = Annotated[
    Literal["error", "warning", "info"] | None,
    Query(description="only lines of this level and more serious ones; line numbers count only these"),
]


def add_line_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/events and /experiments/{name}/lines, and the search in them."""
    lines = LineIndexes(services.logs)

    @router.get("/experiments/{name}/events")
    def list_events(name: Name) -> wire.EventList:
        canonical_id = parse_id(name)
        experiment = find_single_experiment(canonical_id, services)
        events = services.experiments.read_events(experiment.id, 0)
        wants_all = canonical_id.job is None
        selected = [event for event in events if wants_all or (event.job is not None and canonical_id.names(event.job))]
        return {"events": [_show_event(experiment, event) for event in selected]}

    @router.get("/experiments/{name}/lines")
    def read_lines(
        name: Name, first: First = 0, count: Annotated[int, Query(ge=0, le=_MOST_LINES)] = 500, level: Level = None
    ) -> wire.LinePage:
        experiment, selection = _select(name, level, services)
        total, outputs = lines.read_page(selection, first, count)
        return {"total": total, "lines": [_show_line(experiment, output) for output in outputs]}

    @router.get("/experiments/{name}/lines/matches")
    def search_lines(
        name: Name,
        text: Annotated[str, Query(min_length=1, max_length=200)],
        first: Annotated[int, Query(ge=0, le=_MOST_NUMBER)] = 0,
        most: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
        level: Level = None,
    ) -> wire.LineMatches:
        check_text(text)
        total, matches, following = lines.search(_select(name, level, services)[1], text, first, most)
        return {"total": total, "matches": matches, "next": following}


def _show_event(experiment: Experiment, event: StateEvent) -> wire.EventView:
    name = experiment_name(experiment.number, experiment.sub)
    return {
        "id": name if event.job is None else f"{name}.{event.job}",
        "time": format_moment(event.at),
        "state": event.state.value,
        "reason": event.reason.value,
        "sentence": SENTENCES[event.reason],
        "message": event.message,
        "attempt": event.attempt,
    }


def _select(name: str, level: str | None, services: Services) -> tuple[Experiment, Selection]:
    canonical_id = parse_id(name)
    experiment = find_single_experiment(canonical_id, services)
    prepare_log(experiment, services.logs)
    return experiment, Selection(experiment.id, canonical_id, None if level is None else LogLevel(level))


def _show_line(experiment: Experiment, output: NumberedOutput) -> wire.NumberedLine:
    line = output.line
    return {
        "number": output.number,
        "whole": output.whole,
        "id": f"{experiment_name(experiment.number, experiment.sub)}.{line.job}",
        "time": line.at,
        "stream": name_stream(line.stream),
        "text": line.text.decode("utf-8", "replace"),
    }
