"""A port of this machine that leads to a port of a job, as long as a `with` statement lasts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from riseml.base.errors import RisemlError
from riseml.client.exchange import Address
from riseml.client.port_forward import HOST, Forwarder, ForwardRequest, PortPair
from riseml.python_api.errors import add_hints


class Forwarding:
    """Forwards in a thread of its own.

    Args:
        address: where the server is.
        job: its ID.
        port: of the job.
        local: port of this machine; 0: any free one.

    Raises:
        Conflict: on entering: the port of this machine is in use.
    """

    def __init__(self, address: Address, job: str, port: int, local: int) -> None:
        self._forwarder = Forwarder(address, ForwardRequest(job, [PortPair(local, port)]), self._note_failure)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"forward {job}", daemon=True)
        self.failures: list[str] = []
        """Reasons of connections that failed; other connections go on."""
        self.port = 0
        """The port of this machine."""

    @property
    def url(self) -> str:
        """The address of this machine that leads to the job: `http://127.0.0.1:40123`."""
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            with add_hints():
                raise self._error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # the loop is closed: forwarding has ended by an error
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._forward())

    async def _forward(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        try:
            await self._forwarder.forward(self._note_ready)
        except (RisemlError, asyncio.CancelledError) as error:
            self._error = error
        finally:
            self._ready.set()

    def _note_ready(self, pairs: Sequence[PortPair]) -> None:
        self.port = pairs[0].local
        self._ready.set()

    def _note_failure(self, reason: str) -> None:
        self.failures.append(reason)
