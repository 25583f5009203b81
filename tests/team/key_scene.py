"""A team's server in this process behind its gate for keys, over HTTP on loopback, and its users."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from riseml.base.settings import Settings
from riseml.client.server_client import Address, Client
from riseml.server.app import Application, make_application
from riseml.server.clock import now
from riseml.server.gate.key_gate import KeyGate
from riseml.server.http_config import configure_http
from tests.support.ports import find_free_port
from tests.support.stores import make_new_store
from tests.support.waiting import DEADLINE
from tests.support.without_tls import NO_AUTHORITIES
from tests.unit.store.submissions import NOW


@dataclass
class KeyScene:
    """The server, and the keys of its users."""

    application: Application
    home: Path
    url: str
    keys: dict[str, str] = field(default_factory=dict)  # the first key of each user

    def ask(
        self,
        method: str,
        path: str,
        user: str | None = None,
        *,
        key: str | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Send one request with the key of a user, or another one."""
        token = key if user is None else self.keys[user]
        headers = [] if token is None else [(b"Authorization", f"Bearer {token}".encode())]
        with httpx.Client(base_url=self.url, verify=NO_AUTHORITIES, timeout=DEADLINE) as client:
            return client.request(method, f"/v1{path}", json=body, headers=headers)

    def add_user(self, name: str, **values: Any) -> str:
        """Let the admin make a user, and return the user's first key."""
        answer = self.ask("POST", "/users", "admin", body={"name": name, **values})
        assert answer.status_code == 200, answer.text
        self.keys[name] = answer.json()["secret"]
        return self.keys[name]

    def open_client(self, user: str) -> Client:
        """Return a client with the key of a user."""
        return Client(Address(None, self.url, self.keys[user]))


@contextmanager
def open_key_scene(home: Path, more: str = "") -> Iterator[KeyScene]:
    """Serve a new team with an admin; `more`: further keys of server.yml."""
    (home / "riseml.db").write_bytes(make_new_store())
    (home / "server.yml").write_text(
        f"listen: 127.0.0.1:{find_free_port()}\nallow: [process]\nusers: {{ids: {{admin: 2009}}}}\n{more}"
    )
    settings = Settings(home, home / "output", home / "data", executor="process")
    application = make_application(settings, threading.Event())
    try:
        application.services.hosts.pool.observe_hosts(frozenset(), NOW)
        keys = application.services.keys
        assert keys is not None, "a home with a server.yml is that of a team"
        first = application.services.stores.accounts.add_first_admin("admin", now())
        with _serve(KeyGate(application.api, keys)) as url:
            yield KeyScene(application, home, url, {"admin": first.secret})
    finally:
        if application.tls is not None:
            application.tls.close()
        application.database.close()


@contextmanager
def _serve(gate: KeyGate) -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        server = uvicorn.Server(configure_http(gate))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
