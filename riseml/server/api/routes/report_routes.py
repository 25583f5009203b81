"""Reports: list, read, save and remove them, and show a text before it is saved."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path

from riseml import wire
from riseml.analysis.report_text import check_report, find_title
from riseml.base.errors import NotFound
from riseml.control.permissions import choose_team_project
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.report_views import show_blocks, show_report, split_report_name, summarize_report
from riseml.server.clock import now
from riseml.server.services import Stores
from riseml.store.reports import SavedReport

ReportId = Annotated[str, Path(max_length=200, description="`lr-sweep`; of another user `paul.lr-sweep`")]
_LONGEST_PROJECT = 128


def add_report_routes(router: APIRouter, stores: Stores) -> None:
    """Add /reports and everything below it."""

    @router.get("/reports")
    def list_reports(caller: CallerOf) -> wire.ReportList:
        return {"reports": [summarize_report(report, caller) for report in stores.reports.list_reports(caller)]}

    @router.get("/reports/{name}")
    def read_report(name: ReportId, caller: CallerOf) -> wire.ReportView:
        check_text(name)
        return show_report(stores.reports.load(caller, *split_report_name(name, caller)), caller, stores)

    @router.post("/reports")
    def save_report(request: Annotated[wire.ReportRequest, Body()], caller: CallerOf) -> wire.ReportView:
        check_text(request)
        check_report(request["text"])
        report = _make_report(request, caller, stores)
        return show_report(stores.reports.save(caller, report), caller, stores)

    @router.post("/reports/remove")
    def remove_report(request: Annotated[wire.ReportName, Body()], caller: CallerOf) -> wire.ReportSummary:
        check_text(request)
        report = stores.reports.remove(caller, *split_report_name(request["name"], caller))
        return summarize_report(report, caller)

    @router.post("/reports/preview")
    def show_text(request: Annotated[wire.ReportText, Body()], caller: CallerOf) -> wire.ReportBlocks:
        check_text(request)
        author, _ = split_report_name(request.get("name", ""), caller)
        return {"blocks": show_blocks(request["text"], author, caller, stores)}


def _make_report(request: wire.ReportRequest, caller: Caller, stores: Stores) -> SavedReport:
    """Return the report that a user wants; without a project in the request, it stays in its own."""
    user, name = split_report_name(request["name"], caller)
    project = request.get("project")
    team_project = None
    if project is None and request.get("version"):
        try:
            present = stores.reports.load(caller, user, name)
            project = present.project
            team_project = present.team_project
        except NotFound:
            project = ""
    else:
        project = (project or "")[:_LONGEST_PROJECT]
        team_project = choose_team_project(caller, project) if project or caller.project else None
    title = find_title(request["text"]) or name
    version = max(0, request.get("version", 0))
    return SavedReport(user, name, project, team_project, title, request["text"], version, now())
