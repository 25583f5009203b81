"""A team's server under load: 1,000 users, 10,000 experiments, 200 requests a second and 50 streams of a log.

The same requests are sent one after the other first, when the server does nothing else. Both figures come from one run.
The requests go over the unix socket of a server that has a server.yml.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import BenchContext, Measure, Report, bar_at_most, percentile, print_progress
from benchmarks.engine import BASE
from benchmarks.growth import copy_first_experiment
from benchmarks.home import Home, write_project

_USERS = 1000
_EXPERIMENTS = 10_000
_RATE = 200.0  # requests a second
_STREAMS = 50  # that follow the log of a job
_SECONDS = 30.0  # of load
_IDLE_REQUESTS = 600  # one after the other
_MOST_RATIO = 3.0  # of the slowest hundredth under load to that of an idle server
_CONNECTIONS = 40
_PAST = {"image": BASE, "resources": {"cpus": 0.001, "mem": "16MiB"}, "run": "true", "parameters": {"lr": 0.1}}
_PRINTS = {**_PAST, "run": "i=0; while :; do echo line $i; i=$((i+1)); sleep 0.1; done"}
_LIST = "/v1/experiments?all=true&limit=50"
_ROUTES = (
    *(("GET", path, b"") for path in ("/v1/server", _LIST, "/v1/experiments", "/v1/pool", "/v1/pool/queue")),
    *(("GET", path, b"") for path in (f"{_LIST}&sort=-ended&state=FINISHED", "/v1/experiments/1", "/v1/whoami")),
    ("GET", "/v1/experiments/1/logs?follow=false", b""),
    ("POST", "/v1/experiments/1/annotation", b'{"note": "a note"}'),
)


def run(context: BenchContext) -> Report:
    report = Report()
    count = context.rounds(_EXPERIMENTS, 500)
    with Home(context, "team", RISEML_EXECUTOR="process") as home:
        home.wait_closed(home.train(write_project(context.folder / "past", _PAST)))
        printing = home.train(write_project(context.folder / "prints", _PRINTS))
        home.wait_jobs(printing, "RUNNING", 1)
        home.stop()
        # From here on it is a team's server: it would start no job of root.
        (home.folder / "server.yml").write_text("listen: 127.0.0.1:8443\nallow: [process]\n")
        print_progress(f"  {count:,} experiments of {_USERS:,} users")
        copy_first_experiment(home.folder / "riseml.db", count - 1)
        _spread_over_users(home.folder / "riseml.db")
        home.run("server", "start")
        asyncio.run(_measure(context, report, home.socket, printing))
        home.kill(printing)
    idle, loaded = (percentile(measure.values, 0.99) for measure in report.groups["latency"])
    limit = _MOST_RATIO * idle
    report.bars.append(bar_at_most("99th of a hundred under load, of an idle server's", loaded, limit, "ms"))
    return report


def _spread_over_users(store: Path) -> None:
    """Give all experiments but the first two to the users in turn, who have numbers of their own."""
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE experiments SET user = 'user-' || (id % ?), number = id WHERE id > 2", (_USERS,))
        for number in range(_USERS):
            connection.execute(
                "INSERT INTO users (name, role, uid, gid, disabled, created_at) VALUES (?, 'MEMBER', ?, ?, 0, ?)",
                (f"user-{number}", 2000 + number, 2000 + number, "2026-01-01 00:00:00.000000"),
            )


@dataclass(frozen=True, slots=True)
class _AnsweredRequest:
    """A request that was answered."""

    route: str  # method and path
    seconds: float  # from the moment when it was due


async def _measure(context: BenchContext, report: Report, socket: Path, printing: str) -> None:
    requests = itertools.cycle(_ROUTES)
    connections: asyncio.Queue[_LoadConnection] = asyncio.Queue()
    for _ in range(_CONNECTIONS):
        connections.put_nowait(_LoadConnection(socket))
    count = context.rounds(_IDLE_REQUESTS, 60)
    idle: list[_AnsweredRequest] = []
    for _ in range(count):
        idle.append(await _ask(connections, *next(requests)))
    _add_latencies(report, "idle, one after the other", idle)
    print_progress("  load")
    streams = [asyncio.create_task(_follow(socket, printing)) for _ in range(_STREAMS)]
    loaded, late = await _send_at_rate(connections, requests, context.rounds(int(_SECONDS), 3))
    _add_latencies(report, f"{_RATE:.0f} a second, {_STREAMS} streams", loaded)
    report.notes.append(f"{len(loaded):,} requests; the client began the last one {late * 1000:.0f} ms late")
    for stream in streams:
        stream.cancel()
    lines = await asyncio.gather(*streams, return_exceptions=True)
    ended = [line for line in lines if not isinstance(line, asyncio.CancelledError)]
    report.notes.append(f"{len(ended)} of {_STREAMS} streams ended before the end of the load")


def _add_latencies(report: Report, name: str, answers: Sequence[_AnsweredRequest]) -> None:
    """Add the latencies of a mix of requests, and a note with the slowest hundredth of each route."""
    report.add("latency", Measure(name, tuple(answer.seconds for answer in answers), "ms"))
    by_route: dict[str, list[float]] = {}
    for answer in answers:
        by_route.setdefault(answer.route, []).append(answer.seconds)
    slowest = (f"{route} {percentile(values, 0.99) * 1000:.0f}" for route, values in by_route.items())
    report.notes.append(f"{name}, 99th of a hundred of each route in ms: {', '.join(slowest)}")


async def _send_at_rate(
    connections: asyncio.Queue[_LoadConnection], requests: itertools.cycle[tuple[str, str, bytes]], seconds: int
) -> tuple[list[_AnsweredRequest], float]:
    """Send requests when they are due, whether earlier ones were answered or not; a wait for a connection counts.

    Returns:
        The answers, and how late the last one was begun, in seconds.
    """
    begun = time.perf_counter()
    tasks = []
    for number in range(int(seconds * _RATE)):
        due = begun + number / _RATE
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(_ask(connections, *next(requests))))
    late = time.perf_counter() - due
    return list(await asyncio.gather(*tasks)), late


async def _ask(connections: asyncio.Queue[_LoadConnection], method: str, path: str, body: bytes) -> _AnsweredRequest:
    begun = time.perf_counter()
    connection = await connections.get()
    try:
        await connection.ask(method, path, body)
    finally:
        connections.put_nowait(connection)
    return _AnsweredRequest(f"{method} {path}", time.perf_counter() - begun)


async def _follow(socket: Path, experiment: str) -> None:
    """Follow the log of an experiment to its end."""
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        writer.write(_make_head("GET", f"/v1/experiments/{experiment}/logs", b""))
        while await reader.read(1 << 16):
            continue
    finally:
        writer.close()


class _LoadConnection:
    """A kept connection to the server; httpx would take as much of the machine as the server."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes) -> None:
        """Send a request and read its answer.

        Raises:
            RuntimeError: the server refused.
        """
        if self._ends is None:
            self._ends = await asyncio.open_unix_connection(self._socket, limit=1 << 24)
        reader, writer = self._ends
        writer.write(_make_head(method, path, body) + body)
        status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
        if "content-length" in headers:
            answer = await reader.readexactly(int(headers["content-length"]))
        else:
            answer = await _read_chunks(reader)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer[:200]!r}")
        if answer and "ndjson" not in headers.get("content-type", ""):
            json.loads(answer)


def _make_head(method: str, path: str, body: bytes) -> bytes:
    more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: riseml\r\n{more}\r\n".encode()


def _read_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs: Sequence[tuple[str, str, str]] = [line.partition(":") for line in lines if line]
    return int(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    pieces = []
    while size := int(await reader.readline(), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(pieces)
