"""The session of one request of a page, and whose it is."""

from __future__ import annotations

from collections.abc import Callable

from riseml.base.records import dataclass
from riseml.model import Caller


@dataclass(frozen=True, slots=True)
class PageSession:
    """The session of one request."""

    name: str  # its identity, which lets no one in
    caller: Caller  # whose it is
    ask_again: Callable[[], Caller] | None = None  # as `set_caller` has it
    is_valid: Callable[[], bool] | None = None  # asked in a thread while a request is open; None: it stays valid
