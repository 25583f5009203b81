"""The routes of streams into running jobs: a command, a port. Each is one WebSocket (`riseml.stream_messages`).

Every error after the handshake is a message of the stream. Who may open the server's socket may open a stream; a web
page may not: browsers name their page in `Origin`, and such a handshake is refused.
"""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Path, WebSocket, WebSocketDisconnect
from starlette.concurrency import run_in_threadpool

from riseml.errors import RisemlError, UsageError
from riseml.model import Job
from riseml.names import CanonicalId, parse_id
from riseml.server.api.experiment_routes import Name
from riseml.server.api.named_experiments import find_details, find_single_experiment
from riseml.server.log_line import LogLine, write_line
from riseml.server.pool.job_access import JobDoor
from riseml.server.pool.stream_relay import make_failure, relay_stream
from riseml.server.services import Services
from riseml.stream_messages import CommandOrder, StreamMessage, decode_message, encode_message

log = logging.getLogger(__name__)


def add_stream_routes(router: APIRouter, services: Services) -> None:
    """Add the command and the ports of a job."""

    @router.websocket("/experiments/{name}/command")
    async def run_command(websocket: WebSocket, name: Name) -> None:
        client = _WebSocketClient(websocket)
        if not await client.accept():
            return
        try:
            order = await _receive_order(client)
            if order is None:
                return
            door = await run_in_threadpool(_find_door, name, services)
            stream = await run_in_threadpool(door.open_command, order)
        except RisemlError as error:
            await client.refuse(error)
            return
        write_line(log, LogLine(f"{door.title} a user runs a command in it"))
        await relay_stream(stream, client)
        await client.close()

    @router.websocket("/experiments/{name}/ports/{port}")
    async def connect_port(websocket: WebSocket, name: Name, port: Annotated[int, Path(ge=1, le=65535)]) -> None:
        client = _WebSocketClient(websocket)
        if not await client.accept():
            return
        try:
            door = await run_in_threadpool(_find_door, name, services)
            stream = await run_in_threadpool(door.open_port, port)
        except RisemlError as error:
            await client.refuse(error)
            return
        await relay_stream(stream, client)
        await client.close()


class _WebSocketClient:
    """The client at the other end of a WebSocket."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket
        self._gone = False

    async def accept(self) -> bool:
        """Accept the handshake; False when a web page asks for it."""
        if "origin" in self._websocket.headers:
            await self._websocket.close()
            return False
        await self._websocket.accept()
        return True

    async def receive(self) -> StreamMessage | None:
        """Return the next message; None when the client is gone."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            self._gone = True
            return None
        return decode_message(message.get("bytes") or b"")

    async def send(self, message: StreamMessage) -> None:
        """Send a message. Does nothing when the client is gone."""
        if self._gone:
            return
        try:
            await self._websocket.send_bytes(encode_message(message))
        except (WebSocketDisconnect, RuntimeError) as error:
            self._gone = True
            log.debug("the client of a stream is gone: %s", error)

    async def refuse(self, error: RisemlError) -> None:
        """Say why there is no stream."""
        await self.send(make_failure(error))
        await self.close()

    async def close(self) -> None:
        """Close the connection in order."""
        if not self._gone:
            try:
                await self._websocket.close()
            except (WebSocketDisconnect, RuntimeError) as error:
                log.debug("the client of a stream was gone already: %s", error)


async def _receive_order(client: _WebSocketClient) -> CommandOrder | None:
    try:
        message = await client.receive()
    except ValueError as error:
        raise UsageError(f"the request for a command is invalid: {error}") from error
    if message is None or isinstance(message, CommandOrder):
        return message
    raise UsageError("a stream of a command begins with the command")


def _find_door(name: str, services: Services) -> JobDoor:
    wanted = parse_id(name)
    find_details(wanted, services)
    experiment = find_single_experiment(wanted, services)
    return JobDoor(services.hosts, experiment, _find_single_job(wanted, experiment.gang))


def _find_single_job(wanted: CanonicalId, jobs: tuple[Job, ...]) -> Job:
    """Return the one job that an ID names.

    Raises:
        UsageError: it names several, or the build.
    """
    named = [job for job in jobs if wanted.names(job.name)]
    if len(named) == 1:
        return named[0]
    if not named:
        raise UsageError(f"{wanted} builds the environment and cannot be entered", "name another job")
    base = str(wanted).removesuffix(f".{wanted.job}")
    raise UsageError(f"{wanted} has several jobs", f"name one: {', '.join(f'{base}.{job.name}' for job in named[:20])}")
