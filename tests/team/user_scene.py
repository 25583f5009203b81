"""A team's server in this process with its loop, on an engine, and users who ask it, each by a client of their own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from riseml.base.roles import Role, Scope
from riseml.base.settings import Settings
from riseml.executors.docker import labels
from riseml.files.archives.entries import ArchiveEntry
from riseml.files.archives.manifest import write_manifest
from riseml.files.archives.pieces import RECORD, write_pieces
from riseml.model import Caller, Owner
from riseml.server.app import Application, make_application
from tests.support.archives import find_digest, pack
from tests.support.callers import call_as
from tests.support.hosts import Engine
from tests.support.ports import find_free_port
from tests.support.rig import single
from tests.support.stores import make_new_store
from tests.support.waiting import DEADLINE, wait_for

PAUL = Caller(Owner("paul", 2001, 3000), Role.MEMBER, Scope.ADMIN, (("vision", Role.MEMBER),))
ANN = Caller(Owner("ann", 2002, 2002), Role.MEMBER, Scope.ADMIN)
EVA = Caller(Owner("eva", 2003, 2003), Role.MEMBER, Scope.ADMIN, (("vision", Role.MEMBER),))
BOSS = Caller(Owner("boss", 2009, 2009), Role.ADMIN, Scope.ADMIN)
NOBODY = Caller(Owner("nobody-knows", -1, -1), Role.MEMBER, Scope.ADMIN)
ROOT = Caller(Owner("root", 0, 0), Role.ADMIN, Scope.ADMIN)


@dataclass
class UserScene:
    """The server."""

    application: Application
    home: Path
    hosts: list[Engine] = field(default_factory=list)

    def ask(self, caller: Caller, method: str, path: str, body: Any = None, content: bytes = b"") -> httpx.Response:
        """Send one request as a caller."""
        return asyncio.run(_send(call_as(self.application.api, caller), method, path, body, content))

    def send_project(self, caller: Caller, files: Mapping[str, str]) -> str:
        """Send a project as an archive, and return its digest."""
        archive = pack(files)
        digest = find_digest(archive)
        assert self.ask(caller, "PUT", f"/snapshots/{digest}", content=archive).status_code == 201
        return digest

    def submit(self, caller: Caller, config: str, files: Mapping[str, str] | None = None) -> httpx.Response:
        """Submit a project."""
        digest = self.send_project(caller, {"riseml.yml": config, **(files or {})})
        return self.ask(caller, "POST", "/experiments", make_submission(config, digest))

    def wait_end(self, caller: Caller, name: str) -> dict[str, Any]:
        """Return an experiment that has ended, and of which nothing is left on any host."""

        def look() -> dict[str, Any] | None:
            view: dict[str, Any] = self.ask(caller, "GET", f"/experiments/{name}").json()
            return view if view.get("closed") else None

        return wait_for(
            f"{name} is closed", look, DEADLINE, lambda: self.ask(caller, "GET", f"/experiments/{name}").text
        )


def make_submission(config: str, digest: str) -> dict[str, Any]:
    """Return the body of a submission."""
    return {"project": json.loads(config)["project"], "file": "riseml.yml", "config": config, "snapshot": digest}


def describe(project: str, run: str, **train: Any) -> str:
    """Return a riseml.yml of one job."""
    return json.dumps({**json.loads(single(run, **train)), "project": project})


def frame(*contents: bytes) -> bytes:
    """Return the body of a request that sends contents."""
    records = (RECORD.pack(len(content)) + content for content in contents)
    return b"".join(write_pieces(records, compress=False))


def frame_list(entries: tuple[ArchiveEntry, ...]) -> bytes:
    """Return the body of a request that sends the list of a project's files."""
    return b"".join(write_pieces([write_manifest(entries)], compress=False))


@contextmanager
def open_user_scene(home: Path, engine: str | None, server_yml: str = "") -> Iterator[UserScene]:
    """Start a team's server.

    Args:
        home: of the server; its folder is open to all users of the machine.
        engine: its engine; None: it has none, and one that stands still in its place.
        server_yml: more lines of that file.
    """
    home.mkdir(mode=0o700)
    (home / "riseml.db").write_bytes(make_new_store())
    (home / "server.yml").write_text(f"listen: 127.0.0.1:{find_free_port()}\n{server_yml}")
    (home / "server.yml").chmod(0o600)
    places = (home.parent / "output", home.parent / "data")
    settings = Settings(home, *places, engine or f"unix://{home}/none.sock", executor="docker")
    application = make_application(settings, threading.Event())
    scene = UserScene(application, home)
    with ExitStack() as stack:
        stack.callback(application.database.close)
        stack.callback(application.services.hosts.close)
        if application.tls is not None:
            stack.callback(application.tls.close)
        if engine is not None:
            scene.hosts.append(Engine(engine))
            stack.callback(scene.hosts[0].close)
            stack.callback(_remove_images, scene.hosts[0], application.services.info.id)
            stack.callback(scene.hosts[0].clean_up, application.services.info.id)
            _start(application, stack)
        yield scene


def _start(application: Application, stack: ExitStack) -> None:
    stack.callback(application.services.watchers.metrics.stop)
    stack.callback(application.search_loop.stop)
    stack.callback(application.loop.stop)
    application.services.watchers.metrics.start()
    application.loop.start()
    application.search_loop.start()


def _remove_images(engine: Engine, server: str) -> None:
    for mark in (labels.SERVER, labels.STEP_SERVER):
        for row in engine.api.images(filters={"label": f"{mark}={server}"}):
            for name in row["RepoTags"] or ():
                engine.api.remove_image(name, force=True)


async def _send(api: ASGIApp, method: str, path: str, body: Any, content: bytes) -> httpx.Response:
    transport = httpx.ASGITransport(app=api)
    async with httpx.AsyncClient(transport=transport, base_url="http://riseml/v1", timeout=DEADLINE) as client:
        if body is not None:
            return await client.request(method, path, json=body)
        return await client.request(method, path, content=content)
