"""The routes of whole outputs: list the kept ones, list those that a clean-up may remove, remove one."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from riseml import wire
from riseml.base.errors import NotFound, RisemlError
from riseml.base.names import CanonicalId, experiment_name, parse_id
from riseml.base.records import dataclass
from riseml.files.storage_files import MOST_ENTRIES, ListOrder, StorageFiles
from riseml.model import Experiment
from riseml.server.api.output_rules import check_removable
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import find_details, find_single_experiment
from riseml.server.api.views.record_views import show_time
from riseml.server.clock import now
from riseml.server.data.file_places import open_output
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services

_NUMBERS = 50  # experiments and sets that one request examines
_BUDGET = 10.0  # seconds of one request
_LONGEST = 60.0  # seconds of one removal; the client asks again
_MOST_NUMBER = 999_999_999

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _OutputQuery:
    """The conditions for outputs that a clean-up may remove."""

    older: Annotated[int, Query(ge=0, le=400_000_000, description="seconds since its experiment ended")] = 0
    larger: Annotated[int, Query(ge=0, le=2**60, description="bytes")] = 0
    project: Annotated[str | None, Query(max_length=128)] = None
    before: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER)] = None
    sub: Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="also of set `before`, after this one")] = None


def add_output_routes(router: APIRouter, services: Services) -> None:
    """Add /kept, /outputs, and the routes of one experiment's output."""

    @router.get("/kept")
    def list_kept() -> wire.KeptView:
        return _show_kept(services)

    @router.post("/experiments/{name}/keep")
    def keep_output(name: Name, keep: bool = True) -> wire.KeptView:  # noqa: FBT001, FBT002  # a query parameter
        ids = [detail.experiment.id for detail in find_details(parse_id(name), services)]
        if keep:
            services.kept_outputs.keep(ids, now())
        else:
            services.kept_outputs.release(ids)
        return _show_kept(services)

    @router.get("/outputs")
    def list_outputs(query: Annotated[_OutputQuery, Depends()]) -> wire.OutputPage:
        check_text(query.project)
        return _find_outputs(query, services)

    @router.post("/experiments/{name}/output/remove")
    def remove_output(name: Name) -> wire.OutputView:
        canonical_id = parse_id(name)
        experiment = find_single_experiment(canonical_id, services)
        check_removable(canonical_id, services)
        return _remove_output(experiment, services)


def _show_kept(services: Services) -> wire.KeptView:
    experiments = [
        services.experiments.get_experiment(identity).experiment for identity in services.kept_outputs.load_kept()
    ]
    return {
        "kept": [
            _name_experiment(experiment)
            for experiment in sorted(experiments, key=lambda experiment: (experiment.number, experiment.sub or 0))
        ]
    }


def _find_outputs(query: _OutputQuery, services: Services) -> wire.OutputPage:
    """Return a page of outputs, of the newest experiments first; a large set takes several pages."""
    before = query.before if query.before is None or query.sub is None else query.before + 1
    end = time.monotonic() + _BUDGET
    kept_ids = services.kept_outputs.load_kept()
    details = services.experiments.list_experiments(
        services.info.owner.user,
        ended=True,
        project=query.project,
        limit=_NUMBERS,
        before=before,
        companions=False,
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
            outputs += _measure_output(experiment, query.larger, services)
        if time.monotonic() > end:
            return {"outputs": outputs, "next": experiment.number, "next_sub": experiment.sub}
    numbers = {experiment.number for experiment in experiments}
    return {"outputs": outputs, "next": min(numbers) if len(numbers) == _NUMBERS else None, "next_sub": None}


def _measure_output(experiment: Experiment, larger: int, services: Services) -> Sequence[wire.OutputView]:
    """Return an output with its size; nothing when there is none, or when it is too small."""
    view = _make_view(experiment)
    try:
        files = _open_output(experiment, services)
        after: str | None = None
        while True:
            page = files.list_files(ListOrder("", after, MOST_ENTRIES, deep=True))
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


def _remove_output(experiment: Experiment, services: Services) -> wire.OutputView:
    """Remove the content of an output folder; the folder itself stays."""
    view = _make_view(experiment)
    end = time.monotonic() + _LONGEST
    files = _open_output(experiment, services)
    while time.monotonic() < end:
        entries = files.list_files(ListOrder("", limit=1)).entries
        if not entries:
            view["removed"] = True
            break
        part = files.remove_files(entries[0].path, MOST_ENTRIES)
        view["files"] += part.files
        view["size"] += part.size
    text = f"output of {_name_experiment(experiment)} removed: {view['files']} files, {view['size']:,} bytes"
    write_line(log, LogLine(text))
    return view


def _open_output(experiment: Experiment, services: Services) -> StorageFiles:
    return open_output(services.hosts, [experiment], CanonicalId(experiment.number, experiment.sub))


def _make_view(experiment: Experiment) -> wire.OutputView:
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
