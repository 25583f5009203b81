"""The route that shells ask while a user types an ID: it answers within milliseconds, with names alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.errors import NotFound
from riseml.model import Experiment
from riseml.names import experiment_name
from riseml.server.services import Services
from riseml.states import TERMINAL

_MOST_EXPERIMENTS = 50  # of the newest ones
_MOST_NAMES = 200
_INSIDE = re.compile(r"(\d{1,9})\.")


def add_name_routes(router: APIRouter, services: Services) -> None:
    """Add /names."""

    @router.get("/names")
    def list_names(
        prefix: Annotated[str, Query(max_length=100)] = "",
        running: bool = False,  # noqa: FBT001, FBT002  # a query parameter is named by its caller
    ) -> wire.NameList:
        found = _find_experiments(prefix, services, running=running)
        names = _yield_names([one for one in found if not running or one.state not in TERMINAL], inside="." in prefix)
        matching = dict.fromkeys(name for name in names if name.startswith(prefix))
        return {"names": list(matching)[:_MOST_NAMES]}


def _find_experiments(prefix: str, services: Services, *, running: bool) -> list[Experiment]:
    """Return the experiment or the members of the set that the prefix is inside of; else the newest experiments."""
    user = services.info.owner.user
    inside = _INSIDE.match(prefix)
    try:
        details = (
            services.experiments.list_experiments(user, ended=not running, project=None, limit=_MOST_EXPERIMENTS)
            if inside is None
            else services.experiments.find_by_number(user, int(inside[1]))
        )
    except NotFound:
        return []
    return [detail.experiment for detail in details]


def _yield_names(experiments: Iterable[Experiment], *, inside: bool) -> Iterator[str]:
    for one in experiments:
        name = experiment_name(one.number, one.sub)
        if not inside:
            yield str(one.number)
            continue
        if one.sub is not None:
            yield name
        yield from (f"{name}.{job.name}" for job in one.jobs)
