"""The route for the completion of IDs in shells: it answers within milliseconds, with names only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.server.services import Services

_MOST_EXPERIMENTS = 50  # the newest experiments
_MOST_NAMES = 200
_PREFIX = re.compile(r"(\d{0,9})(\.)?", re.ASCII)


def add_name_routes(router: APIRouter, services: Services) -> None:
    """Add /names."""

    @router.get("/names")
    def list_names(
        prefix: Annotated[str, Query(max_length=100)] = "",
        running: bool = False,  # noqa: FBT001, FBT002  # a query parameter is named by its caller
    ) -> wire.NameList:
        names = _find_names(prefix, services, running=running)
        return {"names": list(islice((name for name in names if name.startswith(prefix)), _MOST_NAMES))}


def _find_names(prefix: str, services: Services, *, running: bool) -> Iterable[str]:
    """Return the names inside the experiment or set that the prefix names; else the newest experiments."""
    user = services.info.owner.user
    begun = _PREFIX.match(prefix)
    if begun is None or (begun.end() != len(prefix) and not begun[2]):
        return ()
    if begun[1] and begun[2]:
        return services.names.list_names(user, int(begun[1]), running=running)
    return map(str, services.names.list_numbers(user, begun[1], running=running, most=_MOST_EXPERIMENTS))
