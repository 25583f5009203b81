"""The routes of a whole set: the curves of its experiments, and the importance of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.base.names import experiment_name, parse_id
from riseml.search.importance import find_importances
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import find_details, find_search
from riseml.server.services import Services
from riseml.spec.config.types import Goal
from riseml.store.metrics.metric_history import Bucket

_MOST_CURVES = 1000
_MOST_POINTS = 20_000  # points of all curves of an answer
_FEWEST_POINTS = 2  # points of a curve


def add_set_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/curves and /experiments/{name}/importance."""

    @router.get("/experiments/{name}/curves")
    def read_curves(
        name: Name, metric: Annotated[str, Query(max_length=200, description="the name of a metric: loss")]
    ) -> wire.CurveList:
        check_text([metric])
        members = [detail.experiment for detail in find_details(parse_id(name), services)]
        histories = services.metrics.read_histories([member.id for member in members], metric)
        reported = [member for member in members if member.id in histories]
        latest = reported[-_MOST_CURVES:]
        most = max(_FEWEST_POINTS, _MOST_POINTS // max(1, len(latest)))
        curves = [
            _show_curve(experiment_name(member.number, member.sub), histories[member.id], most) for member in latest
        ]
        return {"metric": metric, "total": len(reported), "curves": curves}

    @router.get("/experiments/{name}/importance")
    def read_importance(name: Name) -> wire.ImportanceView:
        record = find_search(parse_id(name), services, "only a search has a metric that its parameters decide")
        importances = find_importances(record.plan, record.trials)
        return {
            "id": experiment_name(record.number, None),
            "metric": record.plan.search.metric,
            "goal": "maximize" if record.plan.search.goal is Goal.MAXIMIZE else "minimize",
            "trials": importances.counted,
            "stopped": importances.stopped,
            "parameters": [
                {"name": parameter, "importance": round(share, 4)} for parameter, share in importances.parameters
            ],
            "message": importances.message,
        }


def _show_curve(identity: str, buckets: Sequence[Bucket], most: int) -> wire.Curve:
    some = thin_out(buckets, most)
    return {
        "id": identity,
        "step": [bucket.last_step for bucket in some],
        "at": [bucket.last_at for bucket in some],
        "mean": [bucket.mean for bucket in some],
    }


def thin_out(buckets: Sequence[Bucket], most: int) -> list[Bucket]:
    """Return at most `most` of the buckets, at equal distances, with the first and the last one; `most` is above 1."""
    if len(buckets) <= most:
        return list(buckets)
    last = len(buckets) - 1
    return [buckets[round(at * last / (most - 1))] for at in range(most)]
