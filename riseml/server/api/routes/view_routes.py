"""The views of the table of experiments that users have saved."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query

from riseml import wire
from riseml.control.permissions import choose_team_project
from riseml.server.api.callers import CallerOf
from riseml.server.api.submissions.submit import check_text
from riseml.server.services import Stores
from riseml.store.table_views import SavedTable

Project = Annotated[str, Query(max_length=128, description="a project; empty: all experiments")]


def add_view_routes(router: APIRouter, stores: Stores) -> None:
    """Add /table/views, which lists, saves and removes them."""

    @router.get("/table/views")
    def list_views(caller: CallerOf, project: Project = "") -> wire.SavedTableList:
        check_text(project)
        views = [_show(view) for view in stores.table_views.list_views(caller, project)]
        return {"views": views, "projects": stores.names.list_projects(caller)}

    @router.post("/table/views")
    def save(request: Annotated[wire.SavedTableRequest, Body()], caller: CallerOf) -> wire.SavedTableView:
        check_text(request)
        project = request["project"][:128]
        team_project = choose_team_project(caller, project) if project or caller.project else None
        view = SavedTable(caller.user, project, request["name"], request["query"], request["default"], team_project)
        return _show(stores.table_views.save(caller, view))

    @router.post("/table/views/remove")
    def remove(request: Annotated[wire.SavedTableName, Body()], caller: CallerOf) -> wire.SavedTableView:
        check_text(request)
        user = request.get("user") or caller.user
        return _show(stores.table_views.remove(caller, user, request["project"], request["name"]))


def _show(view: SavedTable) -> wire.SavedTableView:
    return {
        "user": view.user,
        "project": view.project,
        "name": view.name,
        "query": view.query,
        "default": view.is_default,
    }
