"""The routes of metrics: the values that jobs reported, and their histories."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.base.errors import NotFound
from riseml.base.names import experiment_name, parse_id
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.metric_views import show_history, show_summary
from riseml.server.api.views.named_experiments import find_details, find_single_experiment
from riseml.server.services import Services


def add_metric_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/metrics and the history of a metric."""

    @router.get("/experiments/{name}/metrics")
    def read_metrics(name: Name) -> wire.MetricsList:
        experiments = [detail.experiment for detail in find_details(parse_id(name), services)]
        tallies = services.metrics.read_tallies([experiment.id for experiment in experiments])
        return {
            "experiments": [
                {
                    "id": experiment_name(experiment.number, experiment.sub),
                    "metrics": [show_summary(summary) for summary in tally.summaries.values()] if tally else [],
                    "dropped": tally.dropped if tally else 0,
                    "slow": sorted(tally.slow) if tally else [],
                }
                for experiment in experiments
                for tally in [tallies.get(experiment.id)]
            ]
        }

    @router.get("/experiments/{name}/metrics/history")
    def read_history(
        name: Name, metric: Annotated[str, Query(max_length=200, description="the name of a metric: loss")]
    ) -> wire.MetricHistoryView:
        experiment = find_single_experiment(parse_id(name), services)
        identity = experiment_name(experiment.number, experiment.sub)
        summaries = services.metrics.read_summaries([experiment.id]).get(experiment.id, {})
        if metric not in summaries:
            hint = f"its metrics are {', '.join(summaries)}" if summaries else "it has reported none so far"
            raise NotFound(f"experiment {identity} has no metric {metric!r}", hint)
        return show_history(identity, metric, services.metrics.read_history(experiment.id, metric))
