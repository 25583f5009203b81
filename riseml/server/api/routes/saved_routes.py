"""The routes of saved outputs: list what is in the object store, and copy an output now."""

from __future__ import annotations

from fastapi import APIRouter

from riseml import wire
from riseml.base.errors import NotFound, Refused
from riseml.base.names import parse_id
from riseml.model import Environment, Experiment
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.named_experiments import find_single_experiment
from riseml.server.api.views.saved_views import show_saved, show_saved_summary
from riseml.server.services import Services


def add_saved_routes(router: APIRouter, services: Services) -> None:
    """Add GET /experiments/{name}/saved and POST /experiments/{name}/save."""

    @router.get("/experiments/{name}/saved")
    def read_saved(name: Name) -> wire.SavedView:
        return _show_saved_output(find_single_experiment(parse_id(name), services), name)

    @router.post("/experiments/{name}/save")
    def save_output(name: Name, order: wire.SaveRequest | None = None) -> wire.SavedView:
        experiment = find_single_experiment(parse_id(name), services)
        if experiment.plan.save is not None and experiment.started_at is None:
            raise Refused(f"no job of {name} has run, and there is nothing to save", "`riseml status` shows its state")
        view = _show_saved_output(experiment, name)
        services.saves.start_save(experiment, _list_keys(order))
        return {**view, "state": "saving"}

    def _show_saved_output(experiment: Experiment, name: str) -> wire.SavedView:
        summary = show_saved_summary(experiment, services.saves)
        if summary is None:
            raise NotFound(
                f"{name} saves nothing: its riseml.yml has no `save`",
                f"`riseml cp output://{name} DIR` copies its output",
            )
        return show_saved(experiment, services.saves, summary)


def _list_keys(order: wire.SaveRequest | None) -> Environment:
    """Return the keys of the user as variables; none when the order has none."""
    if order is None or "keys" not in order:
        return ()
    return tuple((name, str(value)) for name, value in order["keys"].items())
