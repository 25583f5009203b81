"""Pass requests for a proxied app on to the TensorBoard of an experiment, and note whether a browser tab is open.

Nothing of the API is here: `web.proxied_app_auth` has checked the browser, and the answers come from the job
(`web.proxied_app_headers`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import h11
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from riseml.base.errors import Refused, RisemlError, StoreError, Unreachable
from riseml.base.names import parse_id
from riseml.frameworks.tensorboard import TENSORBOARD, TENSORBOARD_PORT
from riseml.model import Caller
from riseml.server.access.job_access import JobConnector
from riseml.server.access.job_http import BadAnswer, JobExchange
from riseml.server.api.job_connectors import find_connector, find_running
from riseml.server.api.views.named_experiments import find_single_experiment
from riseml.server.gate.request_caller import get_caller
from riseml.server.services import Services
from riseml.server.web.proxied_app_auth import PRESENCE, PROXIED_APP_MOUNT
from riseml.server.web.proxied_app_headers import RawHeaders, choose_answered, choose_asked, find_own_place

_SIGN = 15.0  # seconds between two signs of life of a presence
_MOST_AT_ONCE = 32  # requests under way; a browser makes six
_READS = ("GET", "HEAD")
_NO_STORE = {"Cache-Control": "no-store"}

log = logging.getLogger(__name__)


def find_program(name: str, caller: Caller, services: Services) -> tuple[JobConnector, int]:
    """Return the way to the TensorBoard of an experiment, and its port: no page reaches another job or port.

    Raises:
        RisemlError: the experiment has none, or it does not run.
    """
    experiment = find_single_experiment(parse_id(name), caller, services.stores)
    connector = find_connector(f"{name}.{TENSORBOARD}", caller, services)
    (job,) = (job for job in experiment.gang if job.name == TENSORBOARD)
    return connector, job.port or TENSORBOARD_PORT


class ProxiedApp:
    """The application below `PROXIED_APP_MOUNT`: `/<experiment>/<path>`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        name, _, path = scope["path"].removeprefix(f"{PROXIED_APP_MOUNT}/").partition("/")
        try:
            caller = get_caller(scope)
            if f"/{path}" == PRESENCE:
                presence = self._attend_tab(
                    (name, caller), await run_in_threadpool(find_running, name, caller, self._services.stores)
                )
                await StreamingResponse(presence, headers=_NO_STORE, media_type="text/plain")(scope, receive, send)
            elif self._under_way >= _MOST_AT_ONCE:
                await PlainTextResponse("Too many requests at the same time.\n", 503)(scope, receive, send)
            else:
                await self._pass_request((name, caller), scope, receive, send)
        except RisemlError as error:
            hint = f"{error.hint}\n" if error.hint else ""
            status = error.http_status if isinstance(error, StoreError) else 502  # 502 is final for the page
            await PlainTextResponse(f"{error.message}\n{hint}", status, _NO_STORE)(scope, receive, send)

    async def _pass_request(self, named: tuple[str, Caller], scope: Scope, receive: Receive, send: Send) -> None:
        """Let the program of the job answer, until the browser goes away at the latest."""
        self._under_way += 1
        try:
            body = await _read_body(receive)
            connector, port = await run_in_threadpool(find_program, *named, self._services)
            with self._services.watchers.attendance.attend(connector.experiment):
                exchange = JobExchange(await run_in_threadpool(connector.open_port, port))
                answer = asyncio.create_task(_give_answer(exchange, f"127.0.0.1:{port}", body, scope, send))
                disconnect = asyncio.create_task(_wait_until_gone(receive))
                try:
                    await asyncio.wait((answer, disconnect), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in (answer, disconnect):
                        task.cancel()
                    await asyncio.gather(answer, disconnect, return_exceptions=True)
                    exchange.close()
            if not answer.cancelled():
                answer.result()
        finally:
            self._under_way -= 1

    async def _attend_tab(self, named: tuple[str, Caller], identity: int) -> AsyncIterator[bytes]:
        """Send an empty line at intervals while the experiment goes on, then the reason for its end."""
        with (
            self._services.watchers.attendance.attend(identity),
            self._services.loops.notifier.subscribe((identity,)) as changes,
        ):
            while True:
                changes.take_changed()
                try:
                    await run_in_threadpool(find_running, *named, self._services.stores)
                except StoreError as error:
                    log.warning("the store does not say whether %s has ended: %s", named[0], error.message)
                except RisemlError as error:
                    yield error.message.encode()
                    return
                yield b"\n"
                await changes.wait_for_change(_SIGN)


async def _give_answer(exchange: JobExchange, place: str, body: bytes, scope: Scope, send: Send) -> None:
    """Pass a request on, and the answer back. An answer that breaks off stays incomplete, so that the browser
    notices."""
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    headers: RawHeaders = [(b"host", place.encode()), *choose_asked(scope["headers"]), (b"connection", b"close")]
    length = [(b"content-length", str(len(body)).encode())] if body or scope["method"] not in _READS else []
    try:
        request = h11.Request(method=scope["method"], target=target, headers=[*headers, *length])
        head = await exchange.ask(request, body)
    except (BadAnswer, h11.LocalProtocolError) as error:
        raise Unreachable(f"TensorBoard does not answer: {error}", "`riseml logs` shows what it says") from None
    answer_headers = choose_answered(head.headers)
    locations = [value for name, value in head.headers if name == b"location"]
    if locations:
        leads = find_own_place(locations[0], scope["raw_path"].decode("latin-1"), place)
        if leads is None:
            raise Refused("TensorBoard leads to another host, and its address shows this one alone")
        answer_headers.append((b"location", leads.encode()))
    await send({"type": "http.response.start", "status": head.status_code, "headers": answer_headers})
    try:
        async for piece in exchange.read_body():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except BadAnswer as error:
        log.debug("an answer of a job broke off: %s", error)
        return
    await send({"type": "http.response.body", "body": b""})


async def _read_body(receive: Receive) -> bytes:
    """Return the whole body of a request, which `BodyLimit` keeps small."""
    parts = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
