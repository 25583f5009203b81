"""A route that FastAPI makes when a request first asks for it.

FastAPI reads the signature of each endpoint, and makes validators of what the endpoint takes and returns. For all
routes together that took a sixth of the server's cold start, and memory for routes that most servers never answer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

Guard = Callable[[Scope], Coroutine[Any, Any, None]]
"""Raises an error for a request that may not pass."""


class LateRoute(APIRoute):
    """A route of FastAPI that is made when its first attribute is read: by its first request, or by the OpenAPI page.

    Example:
        >>> router = APIRouter(prefix="/v1", route_class=LateRoute)
        >>> application.router.routes.extend(router.routes)  # `include_router` would read the attributes

    Args:
        path: the template: `/v1/experiments/{name}`.
        endpoint: the function that answers.
        options: those of FastAPI's class.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self._parts = path.split("/")
        self.address = tuple(sorted(options.get("methods") or ("GET",))), path  # its methods, and its template
        self.guard: Guard | None = None  # checks each request before the endpoint does anything
        self._arguments = (path, endpoint, options)

    @property
    def is_made(self) -> bool:
        """True when FastAPI has made the route."""
        return "_arguments" not in self.__dict__

    def __getattr__(self, name: str) -> Any:
        """Make the route: Python calls this method for an attribute that is not there yet."""
        if self.is_made:
            raise AttributeError(name)
        path, endpoint, options = self.__dict__.pop("_arguments")
        super().__init__(path, endpoint, **options)
        return getattr(self, name)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route answers a request. Only a route that may do so is made for this."""
        if not self.is_made and not scope.get("root_path") and not self._may_answer(scope["path"].split("/")):
            return Match.NONE, {}
        return super().matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose method and caller pass."""
        if self.guard is not None and scope["method"] in self.address[0]:
            await self.guard(scope)
        await super().handle(scope, receive, send)

    def _may_answer(self, segments: list[str]) -> bool:
        """Return False when a fixed part of the template is not in its place in the requested path."""
        for at, part in enumerate(self._parts):
            if ":path}" in part:  # it stands for any number of parts
                return True
            if at == len(segments) or ("{" not in part and part != segments[at]):
                return False
        return len(segments) == len(self._parts)
