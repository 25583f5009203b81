"""The routes of streams into running jobs: a command, a port, the presence of a client, and a TensorBoard's address.

Each stream is one WebSocket (`riseml.base.stream_messages`). Every error after the handshake is a message of the
stream. Every client that may connect to the server's socket may open a stream, except web pages: browsers name their
page in `Origin`, and the server refuses such a handshake.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

from fastapi import APIRouter, Path, WebSocket, WebSocketDisconnect
from starlette.concurrency import run_in_threadpool

from riseml import wire
from riseml.base.errors import Conflict, Refused, RisemlError, StoreError, UsageError
from riseml.base.names import experiment_name, parse_id
from riseml.base.stream_messages import CommandRequest, StreamMessage, StreamReady, decode_message, encode_message
from riseml.model import Caller
from riseml.server.access.stream_relay import end_in_thread, make_failure, relay_stream
from riseml.server.api.callers import CallerOf
from riseml.server.api.job_connectors import enter_job, find_running
from riseml.server.api.proxied_app import find_program
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.named_experiments import find_details
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services
from riseml.server.web.proxied_app_auth import OWN_PLACE

_LONGEST_WAIT = 60.0  # seconds between two checks whether an experiment has ended

log = logging.getLogger(__name__)


def add_stream_routes(router: APIRouter, services: Services) -> None:
    """Add the command and the ports of a job, and the presence of a client, which keeps a companion running."""

    @router.websocket("/experiments/{name}/command")
    async def run_command(websocket: WebSocket, name: Name, caller: CallerOf) -> None:
        client = _WebSocketClient(websocket)
        if not await client.accept():
            return
        try:
            request = await _receive_request(client)
            if request is None:
                return
            connector = await run_in_threadpool(enter_job, name, caller, services)
            stream = await run_in_threadpool(connector.open_command, request)
        except RisemlError as error:
            await client.refuse(error)
            return
        write_line(log, LogLine(f"{connector.title} a user runs a command in it"))
        with services.watchers.attendance.attend(connector.experiment):
            await relay_stream(stream, client)
        await client.close()

    @router.websocket("/experiments/{name}/ports/{port}")
    async def connect_port(
        websocket: WebSocket, name: Name, caller: CallerOf, port: Annotated[int, Path(ge=1, le=65535)]
    ) -> None:
        client = _WebSocketClient(websocket)
        if not await client.accept():
            return
        try:
            connector = await run_in_threadpool(enter_job, name, caller, services)
            stream = await run_in_threadpool(connector.open_port, port)
        except RisemlError as error:
            await client.refuse(error)
            return
        with services.watchers.attendance.attend(connector.experiment):
            await relay_stream(stream, client)
        await client.close()

    _add_presence_route(router, services)


def _add_presence_route(router: APIRouter, services: Services) -> None:
    @router.websocket("/experiments/{name}/presence")
    async def attend_experiment(websocket: WebSocket, name: Name, caller: CallerOf) -> None:
        client = _WebSocketClient(websocket)
        if not await client.accept():
            return
        try:
            identity = await run_in_threadpool(find_running, name, caller, services.stores)
        except RisemlError as error:
            await client.refuse(error)
            return
        with services.watchers.attendance.attend(identity):
            await client.send(StreamReady())
            await _wait_for_end(client, services, (name, caller), identity)
        await client.close()


def add_proxied_app_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/address, which gives a browser the address of an experiment's TensorBoard, on a separate
    origin (`server.web.proxied_apps`).
    """

    @router.post("/experiments/{name}/address")
    def invite_browser(name: Name, caller: CallerOf) -> wire.ProxiedAppAddress:
        canonical_id = parse_id(name)
        experiment = find_details(canonical_id, caller, services.stores)[0].experiment
        if caller.key or experiment.owner.user != caller.user:  # the page knows the user of the server alone
            raise Refused(
                f"a team's server opens no page of {name}: a program of a job needs a host name of its own, from which"
                " the sessions of users are out of reach",
                f"`riseml forward {name}` opens it on your own machine, over the server's TLS",
            )
        port = services.web.port
        if port is None:
            raise Conflict("the web page is closed", "`riseml web` opens it")
        title = experiment_name(canonical_id.number, canonical_id.sub)
        connector, program_port = find_program(title, caller, services)
        with services.watchers.attendance.attend(connector.experiment):
            stream = connector.open_port(program_port)  # it listens
        stream.socket.close()
        end_in_thread(stream)
        invitation = services.web.proxied_apps.invite(title)
        place = f"{invitation.label}.localhost:{port}"
        return {"url": f"http://{place}{OWN_PLACE}enter?token={invitation.token}"}


class _WebSocketClient:
    """The client at the other end of a WebSocket."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket
        self._disconnected = False

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
            self._disconnected = True
            return None
        return decode_message(message.get("bytes") or b"")

    async def send(self, message: StreamMessage) -> None:
        """Send a message. Does nothing when the client is gone."""
        if self._disconnected:
            return
        try:
            await self._websocket.send_bytes(encode_message(message))
        except (WebSocketDisconnect, RuntimeError) as error:
            self._disconnected = True
            log.debug("the client of a stream is gone: %s", error)

    async def refuse(self, error: RisemlError) -> None:
        """Send the reason why there is no stream."""
        await self.send(make_failure(error))
        await self.close()

    async def close(self) -> None:
        """Close the connection in order."""
        if not self._disconnected:
            try:
                await self._websocket.close()
            except (WebSocketDisconnect, RuntimeError) as error:
                log.debug("the client of a stream was gone already: %s", error)


async def _receive_request(client: _WebSocketClient) -> CommandRequest | None:
    try:
        message = await client.receive()
    except ValueError as error:
        raise UsageError(f"the request for a command is invalid: {error}") from error
    if message is None or isinstance(message, CommandRequest):
        return message
    raise UsageError("a stream of a command begins with the command")


async def _wait_for_end(client: _WebSocketClient, services: Services, named: tuple[str, Caller], identity: int) -> None:
    """Return when the client is gone. When the experiment ends before that, tell the client."""
    disconnect = asyncio.create_task(client.receive())
    with services.loops.notifier.subscribe((identity,)) as subscription:
        while not disconnect.done():
            subscription.take_changed()
            try:
                await run_in_threadpool(find_running, *named, services.stores)
            except StoreError as error:
                log.warning("the store does not say whether %s has ended: %s", named[0], error.message)
            except RisemlError as error:
                await client.send(make_failure(error))
                break
            changed = asyncio.create_task(subscription.wait_for_change(_LONGEST_WAIT))
            await asyncio.wait((disconnect, changed), return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
    disconnect.cancel()
    await asyncio.gather(disconnect, return_exceptions=True)
