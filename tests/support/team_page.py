"""A team's server over TLS on loopback, without the process around it, for what browsers see of it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, Page

from riseml.base.roles import Role
from riseml.base.states import State
from riseml.model import Experiment, Owner
from riseml.planning.plan import first_jobs
from riseml.server.app import Application
from riseml.server.clock import now
from riseml.server.http_config import configure_http
from riseml.server.team_page import make_team_gate
from riseml.store.accounts import User
from riseml.store.insertion import NewExperiments
from tests.support.authority import Authority
from tests.support.ports import find_free_port
from tests.support.web_scene import WAIT, go
from tests.unit.control.simulation import make_plan
from tests.unit.server.stored_experiments import open_application


class TeamPage:
    """A server, its users ann (member), paul (member) and root-of-team (admin), and their keys."""

    def __init__(self, application: Application, folder: Path) -> None:
        self.application = application
        self.accounts = application.services.stores.accounts
        self.sessions = application.services.stores.sessions
        self.keys = {"root-of-team": self.accounts.add_first_admin("root-of-team", now()).secret}
        for name, uid in (("ann", 2001), ("paul", 2002)):
            self.keys[name] = self.accounts.add_user(User(name, Role.MEMBER, now(), uid=uid)).secret
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.origin = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        services = application.services
        assert services.config is not None
        assert services.keys is not None
        gate = make_team_gate(
            application.api, services.config, services.stores, services.keys, _find_owner, ("127.0.0.1",)
        )
        pair = Authority(folder, "team").sign("gpu1", ("127.0.0.1",))
        config = configure_http(gate)
        config.ssl_certfile, config.ssl_keyfile = pair.cert, pair.key
        self._server = uvicorn.Server(config)
        self._server.capture_signals = _capture_nothing  # type: ignore[method-assign]  # no signals in a thread
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()

    async def _serve(self) -> None:
        await self._server.serve(sockets=[self._listener])

    def add_experiment(self, user: str, team_project: str | None = None) -> None:
        """Store an experiment of a user."""
        owner = _find_owner(self.accounts.load_user(user))
        plan = make_plan("train")
        new = NewExperiments(owner, "toaster", "", "", ((plan, first_jobs(plan)),), team_project=team_project)
        self.application.services.stores.experiments.add_experiments(new, now())

    def find(self, user: str, number: int) -> Experiment:
        """Return an experiment of a user."""
        return self.application.services.stores.experiments.find_by_number(user, number)[0].experiment

    def set_state(self, user: str, number: int, state: State) -> None:
        """Store that an experiment is in a state, as the loop does, and tell it to the pages."""
        experiment = self.find(user, number)
        after = replace(experiment, state=state, started_at=now())
        assert self.application.services.stores.experiments.save_decision(experiment, after, now())
        self.application.services.loops.notifier.publish_records(experiment.id)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def open(self, browser: Browser, path: str = "/", *, width: int = 1280) -> Page:
        """Return a page of a browser that is not logged in."""
        context = browser.new_context(ignore_https_errors=True, viewport={"width": width, "height": 800})
        context.set_default_timeout(WAIT)
        page = context.new_page()
        go(page, lambda: self.origin + path)
        return page


@contextmanager
def serve_team(folder: Path) -> Iterator[TeamPage]:
    """A team's server with a home of its own."""
    home = folder / "home"
    home.mkdir()
    (home / "server.yml").write_text(f"listen: 127.0.0.1:{find_free_port()}\nallow: [process]\n")
    with open_application(home) as application:
        team = TeamPage(application, folder)
        try:
            yield team
        finally:
            team.close()
            assert application.tls is not None
            application.tls.close()


@contextmanager
def _capture_nothing() -> Iterator[None]:
    yield


def _find_owner(user: User) -> Owner:
    return Owner(user.name, user.uid or 0, user.gid or 0)
