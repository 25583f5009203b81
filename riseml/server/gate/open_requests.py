"""Requests that are answered for as long as their caller may come in: a followed log, a stream into a job, a download.

The gate asks again about a request every two seconds while it is open. The answer is remembered as long (see
`key_authenticator`), so that a request of a revoked key ends within four seconds, whoever has revoked the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PERIOD = 2.0
"""Seconds between two questions about one open request."""


async def answer_while_valid(
    answer: Awaitable[None], is_valid: Callable[[], bool], period: float | None = None
) -> bool:
    """Answer a request, and cancel the answer when its caller may not come in any more.

    Args:
        answer: answers the request.
        is_valid: returns False when the caller may not come in any more; it is called in a thread.
        period: seconds between two calls of `is_valid`; None: `PERIOD`.

    Returns:
        False when the answer was cancelled.
    """
    task = asyncio.ensure_future(answer)
    try:
        while True:
            await asyncio.wait((task,), timeout=PERIOD if period is None else period)
            if task.done():
                task.result()
                return True
            if not await asyncio.to_thread(is_valid):
                return False
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
