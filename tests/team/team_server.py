"""A real server of a team on loopback, as a process, and its users."""

from __future__ import annotations

import io
import os
import signal
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from riseml import wire
from riseml.base.settings import Settings
from riseml.cli.context import CommandContext
from riseml.cli.main import execute
from riseml.cli.output.printer import Printer
from riseml.client.contexts import NO_CONTEXTS, ServerContext, write_contexts
from riseml.client.server_client import Address, Client
from riseml.server.team_init import TeamRequest, init_team
from tests.support.ports import find_free_port
from tests.support.server_process import SERVER, ServerProcess, start_server
from tests.support.waiting import DEADLINE, wait_for

ADMIN = "alice"
MEMBERS = {"paul": 2001, "ann": 2002}
VIEWER = "vera"


@dataclass
class Team:
    """A running server of a team, and the key of each user."""

    home: Path
    port: int
    fingerprint: str
    keys: dict[str, str]
    environ: dict[str, str]  # of the server
    process: ServerProcess | None = None
    names: tuple[str, ...] = field(default=("localhost", "127.0.0.1"))

    @property
    def url(self) -> str:
        """Where users reach it."""
        return f"https://localhost:{self.port}"

    @property
    def authority(self) -> str:
        """The certificate of its authority, in PEM."""
        return (self.home / "authority" / "authority.pem").read_text()

    def make_tls_context(self) -> ssl.SSLContext:
        """Return what trusts the server."""
        return ssl.create_default_context(cadata=self.authority)

    def open_client(self, user: str) -> Client:
        """Return a client with the key of a user."""
        return Client(Address(None, self.url, self.keys[user], self.authority))

    def log_in(self, user: str, home: Path) -> dict[str, str]:
        """Return the environment of the commands of a user who has logged in."""
        context = ServerContext("team", self.url, user, self.keys[user], self.fingerprint, self.authority)
        write_contexts(home / "config", NO_CONTEXTS.add(context))
        return {"RISEML_HOME": str(home)}

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.process = start_server(SERVER, self.environ, self.home / "output.log")
        with self.open_client(ADMIN) as client:

            def look() -> bool:
                assert self.process is not None and self.process.poll() is None, self.read_log()
                return _answers(client)

            wait_for("the server of the team answers", look, DEADLINE, self.read_log)

    def stop(self) -> None:
        """End the server."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(DEADLINE)

    def read_log(self) -> str:
        """Return what the server has said."""
        return (self.home / "output.log").read_text(errors="replace")


@dataclass(frozen=True)
class Outcome:
    """What a command has printed."""

    code: int
    out: str
    err: str


def run_command(environ: Mapping[str, str], folder: Path, *words: str) -> Outcome:
    """Run a command line as a user."""
    out, err = io.StringIO(), io.StringIO()
    context = CommandContext(Printer(out, err, colour=False, err_colour=False, live=False), environ, folder)
    code = execute(words, context)
    return Outcome(code, out.getvalue(), err.getvalue())


@contextmanager
def open_team(
    home: Path, *, executor: str = "process", more: str = "", host: str = "127.0.0.1", **variables: str
) -> Iterator[Team]:
    """Make the server of a team with an admin, two members and a viewer, and run it.

    Args:
        home: of the server; a short path.
        executor: `docker` needs DOCKER_HOST.
        more: further keys of server.yml.
        host: the address at which it listens.
        variables: further ones of its environment.
    """
    port = find_free_port()
    settings = Settings(home, home / "output", home / "data")
    made = init_team(settings, TeamRequest(f"{host}:{port}", ADMIN, ("localhost", "127.0.0.1")))
    with settings.server_file.open("a") as file:
        file.write(more or "allow: [process]\n")
    kept = ("PATH", "HOME", "LANG", "DOCKER_HOST")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    environ |= {"RISEML_HOME": str(home), "RISEML_EXECUTOR": executor, **variables}
    team = Team(home, port, made.fingerprint, {ADMIN: made.secret}, environ)
    try:
        team.start()
        _make_users(team)
        yield team
    finally:
        team.stop()


def _make_users(team: Team) -> None:
    with team.open_client(ADMIN) as client:
        accounts = client.open_accounts()
        requests: list[wire.NewUserRequest] = [{"name": name, "uid": uid} for name, uid in MEMBERS.items()]
        for request in (*requests, wire.NewUserRequest(name=VIEWER, role="viewer")):
            team.keys[request["name"]] = accounts.create_user(request)["secret"]


def _answers(client: Client) -> bool:
    from riseml.base.errors import Unreachable

    try:
        client.get_server()
    except Unreachable:
        return False
    return True
