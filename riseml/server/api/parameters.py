"""Groups of parameters that several routes take, each of which is a class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Group = TypeVar("Group")


def read_group(group: type[Group]) -> Callable[..., Coroutine[Any, Any, Group]]:
    """Return what FastAPI calls for a group of parameters.

    FastAPI would call the class itself in another thread, one after the other for the groups of a request, and each
    change of the thread waits for its turn while the server is busy. It awaits a coroutine where it is.

    Example:
        >>> query: Annotated[ListQuery, Depends(read_group(ListQuery))]
    """

    async def read(**parameters: object) -> Group:
        return group(**parameters)

    read.__signature__ = inspect.signature(group, eval_str=True)  # type: ignore[attr-defined]  # FastAPI reads it
    return read
