"""The check of each request against `access_table`, after its route is known and before the route does anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastapi.routing import APIWebSocketRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from riseml.base.errors import Refused, RisemlError
from riseml.base.names import parse_id
from riseml.base.roles import Role
from riseml.control.permissions import sees_everything
from riseml.model import Caller
from riseml.server.api.access_table import STREAM, Access, ObjectKind, find_rows
from riseml.server.api.routes.late_route import LateRoute
from riseml.server.api.views.named_experiments import check_changeable, find_details
from riseml.server.gate.request_caller import get_caller
from riseml.server.services import Stores

_DESCRIPTION = "/openapi.json"
"""What the API is: it says nothing about what is there."""


class AccessCheck:
    """Lets a request through to its route when its caller may do that.

    Args:
        stores: have the experiments.
        rows: what a caller needs, by the methods of the route.
    """

    def __init__(self, stores: Stores, rows: Mapping[str, Access]) -> None:
        self._stores = stores
        self._rows = rows

    async def check(self, scope: Scope) -> None:
        """Check a request, whose parameters of the path are known.

        Raises:
            Unauthenticated: no gate has said who calls.
            NotFound: the caller does not see the experiment, or there is none.
            Refused: the caller may not do this.
        """
        caller = get_caller(scope)
        access = self._rows[scope["method"] if scope["type"] == "http" else STREAM]
        _check_key(caller, access)
        if access.kind is not ObjectKind.EXPERIMENT:
            check_role(caller, access.least)
        elif access.least > Role.VIEWER and scope["type"] == "http" and not sees_everything(caller):
            await run_in_threadpool(_check_change, scope["path_params"]["name"], caller, self._stores)


def guard_routes(routes: Iterable[BaseRoute], stores: Stores) -> None:
    """Put the check before each route and stream.

    Raises:
        LookupError: one has no row in `access_table`.
    """
    for route in routes:
        if isinstance(route, LateRoute):
            route.guard = AccessCheck(stores, find_rows(*route.address)).check
        elif isinstance(route, APIWebSocketRoute):
            route.app = _guard_stream(route.app, AccessCheck(stores, find_rows((STREAM,), route.path)))
        elif getattr(route, "path", None) != _DESCRIPTION:
            raise LookupError(f"{route} is neither a route nor a stream, and cannot be checked")


def check_role(caller: Caller, least: Role) -> None:
    """Check the role of a caller on the server.

    Raises:
        Refused: it is too low.
    """
    if caller.role < least:
        raise Refused(
            f"{caller.user} is a {caller.role.value} of this server, and this needs a role of at least {least.value}",
            "an admin of the server may do it, or give the role: `riseml user update`",
        )


def _check_key(caller: Caller, access: Access) -> None:
    if caller.scope < access.scope:
        raise Refused(
            f"the key has the scope {caller.scope.value}, and this needs {access.scope.value}",
            "`riseml key create --scope` makes another key",
        )


def _check_change(name: str, caller: Caller, stores: Stores) -> None:
    details = find_details(parse_id(name), caller, stores)
    check_changeable(caller, details)


def _guard_stream(stream: ASGIApp, guard: AccessCheck) -> ASGIApp:
    """Return a stream whose handshake is refused unless its caller may open such streams. What its experiment allows is
    checked after the handshake: the reason of such a refusal is a message of the stream."""

    async def open_stream(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await guard.check(scope)
        except RisemlError:
            await send({"type": "websocket.close", "code": 1008})
            return
        await stream(scope, receive, send)

    return open_stream
