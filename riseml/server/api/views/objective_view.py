"""What searches compare their trials by, in the shape of the HTTP API."""

from __future__ import annotations

from typing import Literal

from riseml import wire
from riseml.analysis.ranking import Objective, list_objectives
from riseml.analysis.run_value import describe_value
from riseml.spec.config.types import Goal, SearchSection


def show_goal(goal: Goal) -> Literal["maximize", "minimize"]:
    """Return a goal as the API names it."""
    return "maximize" if goal is Goal.MAXIMIZE else "minimize"


def show_objective(objective: Objective) -> wire.ObjectiveView:
    """Return an objective as it crosses the wire."""
    return {
        "metric": objective.metric,
        "goal": show_goal(objective.goal),
        "rule": str(objective.rule),
        "words": describe_value(objective.metric, objective.goal, objective.rule),
    }


def show_objectives(search: SearchSection) -> list[wire.ObjectiveView]:
    """Return all objectives of a search."""
    return [show_objective(objective) for objective in list_objectives(search)]
