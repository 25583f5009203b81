"""Servers of one home and one PostgreSQL that take each other's place while an experiment runs.

Each server is the standby of the one before. A former server that was stopped goes on after the take-over, in the
middle of what it was doing, and must change nothing: no job, no line of a log, no row.
"""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx
import sqlalchemy as sa

from riseml.base.errors import StoreError
from riseml.base.faultpoints import VARIABLE, Point
from riseml.store.claim import read_claim
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, make_good_scene, make_open_scene
from tests.chaos.sites import Fault, Site
from tests.support.server_process import SERVER, ServerProcess, start_server
from tests.support.silent_relay import SilentRelay
from tests.support.stores import open_database, start_postgres
from tests.support.waiting import DEADLINE

_STANDBY = (*SERVER, "--standby")
_PATIENCE = "5"  # seconds after which a standby takes over
_STOPS = (Point.STARTING, Point.LOG_READ, Point.SAVING, Point.END_SEEN, Point.REMOVING, Point.RELEASING)

SHORT_STOPS = (Point.STARTING, Point.LOG_READ, Point.REMOVING)
"""The points of the row that each run of the suite tries."""


def takeover_faults() -> list[Fault]:
    """Return a fault for each kind."""
    return [
        Fault("server killed, cut off, stopped: standby", lose_servers_in_turn),
        Fault("server stopped at a step: standby", lambda site: stop_at_points(site, *_STOPS)),
    ]


@dataclass(slots=True)
class _Line:
    """The servers of one home: the one that serves, and the one that waits."""

    rig: PatientRig
    store: str  # address of the database
    servers: list[ServerProcess] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what is wrong

    def start(self, order: str = "", store: str = "") -> ServerProcess:
        """Start the next server, and wait until it is a standby; the first one serves."""
        environment = {**self.rig.environ(), "RISEML_STORE": store or self.store, VARIABLE: order}
        made = start_server(_STANDBY, environment, self.rig.home / f"server-{len(self.servers)}.log")
        self.servers.append(made)
        waits = self.rig.socket.with_name("standby.sock")
        self.rig.wait("it serves or waits", lambda: waits.exists() or self.is_holder(made))
        return made

    def is_holder(self, server: ServerProcess) -> bool:
        """Return True when a server has the claim on the database."""
        engine = sa.create_engine(self.store, poolclass=sa.NullPool)
        with engine.connect() as connection:
            state = read_claim(connection)
        return state is not None and state.holder.holder.startswith(f"process {server.pid} ")

    def wait_taken_over(self, server: ServerProcess) -> None:
        """Wait until a standby has the claim."""
        self.rig.wait("the standby takes over", lambda: self.is_holder(server))
        self.rig.process = server

    def end_former(self, server: ServerProcess, code: int) -> None:
        """Let a former server go on, and wait for its end."""
        if server.poll() is None:
            server.send_signal(signal.SIGCONT)
        ended: int | str = "nothing"
        with suppress(subprocess.TimeoutExpired):
            ended = server.wait(DEADLINE)
        if ended != code:
            self.notes.append(f"{self.rig.home}: a server that lost its claim ended with {ended}, not with {code}")

    def end(self) -> None:
        """End all servers, those that are stopped, too."""
        for server in self.servers:
            if server.poll() is None:
                server.send_signal(signal.SIGKILL)
                server.wait()


def lose_servers_in_turn(site: Site) -> Tally:
    """Kill a server, cut the next one off from its database, and stop the third one, while jobs print."""
    scene = make_open_scene()
    with _open_line(site) as line, ExitStack() as stack:
        rig = line.rig
        relay = stack.enter_context(SilentRelay(site.folder / uuid.uuid4().hex[:6], line.store))
        first = line.start()
        line.wait_taken_over(first)
        _submit_until_stored(rig, scene)
        _wait_for_lines(rig, 3)
        second = line.start(store=relay.store)
        _lose(line, first, second, lambda: first.send_signal(signal.SIGKILL), -signal.SIGKILL)
        third = line.start()
        _lose(line, second, third, relay.fall_silent, StoreError.exit_code)
        fourth = line.start()
        _lose(line, third, fourth, lambda: third.send_signal(signal.SIGSTOP), StoreError.exit_code)
        rig.let_go()
        tally = judge(rig, scene, 3)
        return replace(tally, notes=(*tally.notes, *line.notes))


def stop_at_points(site: Site, *points: Point) -> Tally:
    """Stop each server at one of these points, and let it go on when its standby serves."""
    scene = make_good_scene()
    with _open_line(site) as line, ThreadPoolExecutor(1) as hands:
        orders = [f"{point.value}:1:STOP" for point in points]
        active = line.start(orders[0])
        line.wait_taken_over(active)
        submitting = hands.submit(_submit_until_stored, line.rig, scene)
        for order in [*orders[1:], ""]:
            standby = line.start(order)
            line.rig.wait("the server is stopped", partial(_is_stopped, active))
            line.wait_taken_over(standby)
            line.end_former(active, StoreError.exit_code)
            active = standby
        submitting.result()
        line.rig.wait("it answers", line.rig.state)
        tally = judge(line.rig, scene, len(points))
        return replace(tally, notes=(*tally.notes, *line.notes))


def _lose(line: _Line, former: ServerProcess, standby: ServerProcess, lose: Callable[[], object], code: int) -> None:
    """Lose a server, and see that its standby goes on with the log."""
    lose()
    line.wait_taken_over(standby)
    line.end_former(former, code)
    _wait_for_lines(line.rig, 3)


def _wait_for_lines(rig: PatientRig, count: int) -> None:
    """Wait until a job has printed so many more lines, in the log."""
    before = _count_lines(rig)
    rig.wait("it prints", lambda: _count_lines(rig) >= before + count)


def _count_lines(rig: PatientRig) -> int:
    try:
        return len(rig.lines("1", follow=False))
    except (httpx.HTTPError, AssertionError):  # no server answers, or it has just begun
        return 0


def _submit_until_stored(rig: PatientRig, scene: Scene) -> None:
    """Submit a scene; a server may be stopped before it answers."""

    def submit() -> bool:
        try:
            rig.submit_scene(scene)
        except httpx.HTTPError:
            return False
        return True

    rig.wait("the experiment is stored", submit)


def _is_stopped(server: ServerProcess) -> bool:
    state = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state != "Z", "the server has ended"
    return state == "T"


@contextmanager
def _open_line(site: Site) -> Iterator[_Line]:
    """Give a home without a server, with a database of its own."""
    postgres = sa.create_engine(start_postgres(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with open_database(postgres) as store, site.rig(RISEML_STORE=store, RISEML_TAKEOVER_AFTER=_PATIENCE) as rig:
        line = _Line(rig, store)
        try:
            yield line
            line.rig.stop()
        finally:
            line.end()
