"""The routes of what users say about experiments: a name, tags, a note, a star, archived; and the ID behind a name."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Body, Query

from riseml import wire
from riseml.base.annotations import read_text
from riseml.base.errors import UsageError
from riseml.base.names import experiment_name, name_for_reader, parse_id
from riseml.server.api.callers import CallerOf
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.experiment_words import find_id
from riseml.server.api.views.named_experiments import find_details
from riseml.server.api.views.record_views import show_annotation
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services
from riseml.store.annotations import AnnotationUpdate, Subject

log = logging.getLogger(__name__)


def add_annotation_routes(router: APIRouter, services: Services) -> None:
    """Add POST /experiments/{name}/annotation, and GET /names/find."""

    @router.post("/experiments/{name}/annotation")
    def change_annotation(
        name: Name, caller: CallerOf, request: Annotated[wire.AnnotationChange, Body()]
    ) -> wire.AnnotationView:
        canonical_id = parse_id(name)
        if canonical_id.job is not None:
            raise UsageError(f"{name} is a job", f"name its experiment: {canonical_id.number}")
        details = find_details(canonical_id, caller, services.stores)
        change = _read_change(request)
        for detail in details:
            change = _mask_change(change, partial(services.loops.secrets.mask_text, detail.experiment.id))
        subject = Subject(canonical_id.number, canonical_id.sub or 0)
        annotation = services.stores.annotations.change(details[0].experiment.owner.user, subject, change)
        logged = experiment_name(subject.number, subject.sub or None)
        write_line(log, LogLine(f"{logged} {', '.join(sorted(request)) or 'nothing'} changed", experiment=logged))
        for detail in details:
            services.loops.notifier.publish_records(detail.experiment.id)
        identity = name_for_reader(caller.user, details[0].experiment.owner.user, subject.number, subject.sub or None)
        return {"id": identity, **show_annotation(annotation)}

    @router.get("/names/find")
    def find_name(
        caller: CallerOf,
        word: Annotated[str, Query(max_length=200, description="a name, a tag or an ID: baseline, baseline.worker.1")],
    ) -> wire.FoundName:
        check_text(word)
        return {"id": find_id(word, caller, services.stores)}


def _mask_change(change: AnnotationUpdate, mask: Callable[[str], str]) -> AnnotationUpdate:
    """Return a change without the values of the secrets of a run that is open."""
    return replace(change, note=change.note and mask(change.note), name=change.name and mask(change.name))


def _read_change(request: wire.AnnotationChange) -> AnnotationUpdate:
    """Return a change with names and tags in their normal form.

    Raises:
        UsageError: a name, a tag or the note is not allowed.
    """
    note = request.get("note")
    name = request.get("name")
    return AnnotationUpdate(
        name=read_text("name", name) if name else name,
        added=tuple(read_text("tag", tag) for tag in request.get("add_tags", ())),
        removed=tuple(read_text("tag", tag) for tag in request.get("remove_tags", ())),
        note=read_text("note", note) if note else note,
        starred=request.get("starred"),
        archived=request.get("archived"),
    )
