"""A server for tests: HTTP on a real unix socket and on loopback, with answers that a test sets."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from riseml import __version__, wire
from riseml.base.names import looks_like_id
from riseml.base.wire_revision import find_package, read_revision
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.manifest import read_manifest
from riseml.files.archives.pieces import INCOMING, PieceReader, RecordReader
from tests.support.archives import ContentCollector

NOW = "2026-08-31T07:23:46Z"


class Cut(Exception):
    """Breaks a stream in the middle of its body."""


def make_job(identity: str, **changes: Any) -> wire.JobView:
    job: wire.JobView = {
        "id": identity,
        "name": identity.partition(".")[2],
        "state": "RUNNING",
        "reason": "RUNNING",
        "message": "",
        "host": "local",
        "attempt": 1,
        "exit_code": None,
        "signal": None,
        "oom": False,
        "cpus": 0.5,
        "mem_mib": 1024,
        "gpus": 0,
        "image": "python:3.11",
        "shell": None,
        "started_at": NOW,
        "ended_at": None,
    }
    return {**job, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


def make_experiment(identity: str = "4", **changes: Any) -> wire.ExperimentView:
    experiment: wire.ExperimentView = {
        "id": identity,
        "user": "paul",
        "project": "ai-toaster",
        "name": "",
        "tags": [],
        "note": "",
        "starred": False,
        "archived": False,
        "type": "experiment",
        "shows": [],
        "state": "RUNNING",
        "reason": "RUNNING",
        "message": "",
        "cause": None,
        "last_lines": [],
        "advice": "",
        "created_at": NOW,
        "started_at": NOW,
        "ended_at": None,
        "image": "tensorflow/tensorflow:2.21.0",
        "image_digest": None,
        "framework": "tensorflow",
        "run": [{"jobs": ["master", "worker.1"], "lines": ["python train.py"]}],
        "concurrency": 1,
        "tensorboard": None,
        "parameters": {},
        "output": f"/output/paul/ai-toaster/{identity}",
        "exit_code": None,
        "closed": False,
        "jobs": [make_job(f"{identity}.master"), make_job(f"{identity}.worker.1")],
        "experiments": [],
        "metrics": [],
        "main_metric": None,
        "search": None,
        "notes": [],
        "saved": None,
        "written": None,
    }
    return {**experiment, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


def make_search(**changes: Any) -> wire.SearchView:
    search: wire.SearchView = {
        "method": "grid",
        "metric": "accuracy",
        "goal": "maximize",
        "objective": "best",
        "objectives": [
            {"metric": "accuracy", "goal": "maximize", "rule": "best", "words": "the largest accuracy"},
        ],
        "seed": 0,
        "trials": 2,
        "repeat": 1,
        "made": 2,
        "running": 0,
        "complete": 0,
        "stopped": 0,
        "failed": 0,
        "best": None,
        "front": [],
        "end": None,
        "message": "trial 2 of 2",
        "next": "",
        "variables": [],
    }
    return {**search, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


def line(text: str, number: int = 0, job: str = "4.master") -> wire.LineEntry:
    return {"type": "line", "cursor": str(number), "id": job, "time": NOW, "stream": "stdout", "text": text}


def state(name: str, number: int = 0, job: str = "4.master", **changes: Any) -> wire.StateEntry:
    entry = {"type": "state", "cursor": str(number), "id": job, "time": NOW, "state": name, "reason": name}
    more = {"sentence": name.capitalize(), "message": "", "exit_code": None}
    return {**entry, **more, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


def end(name: str = "FINISHED", number: int = 99, **changes: Any) -> wire.EndEntry:
    entry = {"type": "end", "cursor": str(number), "id": "4", "state": name, "exit_code": 0, "reason": "COMPLETED"}
    more = {"message": "Completed", "cause": None}
    return {**entry, **more, **changes}  # type: ignore[typeddict-item]  # the fields of the shape, by name


@dataclass
class FakeServer:
    """What the server knows, and the requests that it got."""

    home: Path
    url: str = ""  # of a second door, on loopback
    experiments: dict[str, wire.ExperimentView] = field(default_factory=dict)  # by ID
    entries: list[wire.Entry] = field(default_factory=list)  # the log of every experiment
    cuts: list[int] = field(default_factory=list)  # after so many entries the next log streams break
    lost: list[str] = field(default_factory=list)  # `METHOD /path` whose next answer breaks in the middle
    hold: bool = False  # a log stays open after its last entry
    snapshots: dict[str, Any] = field(default_factory=dict)  # by digest: an archive, or the contents by path
    manifests: dict[str, tuple[ArchiveEntry, ...]] = field(default_factory=dict)  # by digest
    contents: dict[str, bytes] = field(default_factory=dict)  # by SHA-256
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)  # instead of the usual answer to `METHOD /path`
    asked: list[str] = field(default_factory=list)  # `METHOD /path?query` of each request
    headers: dict[str, str] = field(default_factory=dict)  # of the last request
    bodies: list[Any] = field(default_factory=list)  # of the submissions
    account_bodies: list[Any] = field(default_factory=list)  # of requests about users, keys and projects
    answered: dict[str, bytes] = field(default_factory=dict)  # the last bodies of what `answers` has
    plans: list[Any] = field(default_factory=list)  # of the dry runs
    server: dict[str, Any] = field(default_factory=dict)  # its own view

    @property
    def incoming(self) -> Path:
        """Where a client leaves packs."""
        return self.home / "snapshots" / INCOMING

    def reset(self) -> None:
        """Forget everything."""
        self.incoming.mkdir(parents=True, exist_ok=True)
        for pack in self.incoming.iterdir():
            pack.unlink()
        shutil.rmtree(self.home / "cache", ignore_errors=True)  # what commands of other tests have cached
        for name in ("experiments", "entries", "cuts", "lost", "answers", "asked", "bodies", "plans"):
            getattr(self, name).clear()
        self.account_bodies.clear()
        for name in ("snapshots", "manifests", "contents"):
            getattr(self, name).clear()
        self.hold = False
        self.server = {
            "version": __version__,
            "revision": read_revision(),
            "package": find_package(),
            "id": "s",
            "pid": 7,
            "started_at": NOW,
            "home": str(self.home),
        }
        self.server |= {
            "executor": "docker",
            "note": "",
            "engine": "unix:///var/run/docker.sock",
            "output": str(self.home / "output"),
            "data": str(self.home / "data"),
            "problem": "",
            "active": 0,
            "closing": 0,
            "searches": 0,
            "state": "serving",
            "holder": "",
            "holder_since": "",
            "holder_address": "",
        }
        self.server["missing_engine"] = ""

    def refuse(self, route: str, kind: str, message: str, **more: Any) -> None:
        """Let a route answer with an error."""
        status = more.pop("status", 400)
        body = {"kind": kind, "message": message, "hint": "do this", "exit_code": 2} | more
        self.answers[route] = (status, {"error": body})

    async def serve(self, request: Request) -> Response:
        """Answer any request."""
        path = request.url.path.removeprefix("/v1")
        self.asked.append(f"{request.method} {path}" + (f"?{request.url.query}" if request.url.query else ""))
        self.headers = dict(request.headers)
        body = await request.body()
        if f"{request.method} {path}" in self.lost:
            self.lost.remove(f"{request.method} {path}")
            return StreamingResponse(_half())
        if body and path.startswith(("/users", "/keys", "/projects")):
            self.account_bodies.append(json.loads(body))
        if path == "/plans":
            self.plans.append(json.loads(body))
        if request.method == "PUT" and path.startswith(("/secrets/", "/registries/")):
            self.bodies.append(json.loads(body))
        if found := self.answers.get(f"{request.method} {re.sub('(?<=^/packs)/.*', '', path)}"):
            status, answer = found
            self.answered[f"{request.method} {path}"] = body
            return Response(answer, status) if isinstance(answer, str) else JSONResponse(answer, status)
        return self._answer(request, path.strip("/").split("/"), body)

    def _answer(self, request: Request, parts: list[str], body: bytes) -> Response:
        match request.method, parts:
            case "GET", ["server"] | ["system"]:
                server = {name: value for name, value in self.server.items() if value is not None}  # None: not sent
                return JSONResponse(server if parts[0] == "server" else {"server": server, "hosts": HOSTS})
            case "GET", ["pool"]:
                return JSONResponse(POOL)
            case _, ["snapshots", digest, *rest]:
                return self._answer_files(request.method, digest, rest, body)
            case "POST", ["packs", name]:
                pack = self.incoming / name
                self.contents |= _read_records([pack.read_bytes()])
                pack.unlink()
                return Response(status_code=204)
            case "POST", ["experiments", "check"]:
                return Response(status_code=204)
            case "POST", ["experiments"]:
                self.bodies.append(json.loads(body))
                return JSONResponse(self.experiments.setdefault("4", make_experiment()), 201)
            case "GET", ["experiments"]:
                asked = request.query_params
                before = int(asked.get("before", 2**31))
                older = [one for one in self.experiments.values() if int(one["id"]) < before]
                return JSONResponse({"experiments": older[-int(asked.get("limit", len(older) or 1)) :]})
            case "GET", ["names", "find"]:
                return self._find_name(request.query_params["word"])
            case _, ["experiments", identity, *rest]:
                return self._answer_experiment(request, identity, rest, body)
        raise AssertionError(f"unexpected {request.method} {request.url}")

    def _annotate(self, identity: str, change: Mapping[str, Any]) -> Response:
        """Change what is said about an experiment that exists."""
        experiment: Any = self.experiments[identity]
        tags = [*experiment["tags"], *change.get("add_tags", [])]
        experiment |= {name: value for name, value in change.items() if name in experiment}
        experiment["tags"] = [tag for tag in tags if tag not in change.get("remove_tags", [])]
        return JSONResponse({key: experiment[key] for key in ("id", "name", "tags", "note", "starred", "archived")})

    def _find_name(self, word: str) -> Response:
        """Answer with the ID of the experiment with this name or tag."""
        named = [one["id"] for one in self.experiments.values() if word == one["name"] or word in one["tags"]]
        if named or looks_like_id(word):
            return JSONResponse({"id": named[0] if named else word})
        message = f"{word!r} is not an experiment ID, and no experiment has this name or tag"
        body = {"kind": "UsageError", "message": message, "hint": "an ID looks like 4", "exit_code": 2}
        return JSONResponse({"error": body}, 400)

    def _answer_files(self, method: str, digest: str, rest: list[str], body: bytes) -> Response:
        if method == "HEAD":
            return Response(status_code=200 if digest in self.snapshots else 404)
        if not rest:
            self.snapshots[digest] = body
            return Response(status_code=201)
        if rest == ["manifest"]:
            self.manifests[digest] = read_manifest(b"".join(PieceReader().feed(body)))
        else:
            wanted = {entry.content for entry in self.manifests[digest]}
            found = _read_records(PieceReader().feed(body))
            self.contents |= {content: data for content, data in found.items() if content in wanted}
        return self._answer_missing(digest)

    def _answer_missing(self, digest: str) -> Response:
        files = [entry for entry in self.manifests[digest] if entry.kind is EntryKind.FILE]
        missing = [entry.content for entry in files if entry.content not in self.contents]
        if not missing:
            self.snapshots[digest] = {entry.path: self.contents[entry.content] for entry in files}
        return JSONResponse({"missing": missing})

    def _answer_experiment(self, request: Request, identity: str, rest: list[str], body: bytes) -> Response:
        found = self.experiments.get(".".join(identity.split(".")[:1]))
        if found is None:
            message = f"there is no experiment {identity}"
            failure = {"kind": "NotFound", "message": message, "hint": None, "exit_code": 3}
            return JSONResponse({"error": failure}, 404)
        if rest == ["annotation"]:
            self.bodies.append(json.loads(body))
            return self._annotate(identity, self.bodies[-1])
        if rest == ["logs"]:
            return StreamingResponse(self._stream(request), media_type="application/x-ndjson")
        return JSONResponse(found)

    async def _stream(self, request: Request) -> AsyncIterator[bytes]:
        cursor = request.query_params.get("cursor")
        known = [entry["cursor"] for entry in self.entries]
        start = known.index(cursor) + 1 if cursor else 0
        stop = start + self.cuts.pop(0) if self.cuts else None
        for entry in self.entries[start:stop]:
            yield json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        if stop is not None:
            yield b'{"type": "line", "cur'  # half an entry: it must not be believed
            raise Cut
        if self.hold:
            await asyncio.Event().wait()


def _read_records(pieces: Iterable[bytes | memoryview]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    records = RecordReader(ContentCollector(found), 1 << 30)
    for piece in pieces:
        records.feed(piece)
    return found


async def _half() -> AsyncIterator[bytes]:
    yield b'{"id": '
    raise Cut


HOSTS: list[wire.HostView] = [
    {
        "name": "local",
        "state": "up",
        "drained": False,
        "message": "",
        "url": "unix:///var/run/docker.sock",
        "address": "127.0.0.1",
        "swarm": "",
        "labels": {},
        "jobs": [],
        "engine": "Docker 20.10.24",
        "cpus": 2.0,
        "mem_mib": 16384,
        "gpus": 0,
        "gpu_mem_mib": 0,
        "gpu_driver": "",
        "cpus_used": 0.5,
        "mem_mib_used": 1024,
        "gpus_used": 0,
    }
]
POOL: wire.PoolView = {
    "file": None,
    "trouble": "",
    "network": "bridge",
    "swarm_trouble": "",
    "output": "/output",
    "data": "/data",
    "shared_output": True,
    "hosts": HOSTS,
    "gone": [],
}


@contextmanager
def open_fake_server() -> Iterator[FakeServer]:
    """Serve on `home/server.sock` in a new home with a short path, and at the `url` of the server."""
    home = Path(tempfile.mkdtemp(prefix="riseml-fake-"))
    fake_server = FakeServer(home)
    fake_server.reset()
    methods = ["GET", "POST", "PUT", "DELETE", "HEAD"]
    app = Starlette(routes=[Route("/{path:path}", fake_server.serve, methods=methods)])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening, socket.socket() as remote:
        remote.bind(("127.0.0.1", 0))
        remote.listen(16)
        fake_server.url = f"http://127.0.0.1:{remote.getsockname()[1]}"
        listening.bind(str(home / "server.sock"))
        listening.listen(16)
        config = uvicorn.Config(
            app, log_config=None, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening, remote]}, daemon=True)
        thread.start()
        try:
            yield fake_server
        finally:
            server.should_exit = True
            thread.join()
            shutil.rmtree(home, ignore_errors=True)


LOST = "Lost the riseml server; connecting again. The experiment goes on.\n"
"""The message of a command that lost the server."""


def finish(fake_server: FakeServer, *, state_name: str = "FINISHED", **ending: object) -> None:
    fake_server.experiments["4"] = make_experiment(notes=["a note"])
    fake_server.entries = [
        state("RUNNING", 1, job="4"),
        line("hello", 2),
        line("from a worker", 3, job="4.worker.1"),
        end(state_name, 4, **ending),
    ]
