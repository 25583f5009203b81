"""Whole servers and their store: one server per home, and jobs that run on while the store is locked or away."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from riseml import __version__, wire
from riseml.base.errors import StoreError
from riseml.client.exchange import Address
from riseml.client.server_client import Client
from tests.real.docker.test_recovery import COUNT, COUNTER, numbers
from tests.support.command import run_riseml
from tests.support.ports import find_free_port
from tests.support.rig import GO, Rig, gang, single
from tests.support.server_process import SERVER
from tests.support.stores import SCRIPTS, start_postgres
from tests.support.waiting import DEADLINE

UNREACHED = """\
hosts:
- {name: gpu1, url: "tcp://127.0.0.1:9", insecure: true}
"""
"""A pool.yml with a host where no engine is."""

# CI is root and makes them; a user without root runs the other tests.
needs_namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0,
    reason="this user may not make mount namespaces",
)


class Machine:
    """One machine of several that share a home: a folder of its own, and perhaps another machine's id."""

    def __init__(self, rig: Rig, local: Path, machine_id: Path | None = None) -> None:
        environ = {name: value for name, value in rig.environ().items() if name != "RISEML_EXECUTOR"}
        self.environ = {**environ, "RISEML_LOCAL": str(local)}
        self._local = local
        self._id = machine_id
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        server = [sys.executable, *SERVER, "--standby"]
        if self._id is not None:
            server = [
                "unshare",
                "--mount",
                "sh",
                "-c",
                f'mount --bind {self._id} /etc/machine-id && exec "$@"',
                "-",
                *server,
            ]
        self._local.mkdir(mode=0o700)
        with (self._local / "output").open("wb") as log:
            self._process = subprocess.Popen(server, env=self.environ, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def waits(self) -> bool:
        return (self._local / "standby.sock").exists()

    def answers(self) -> bool:
        return (self._local / "server.sock").exists() and not self.waits() and self.ask()["state"] == "serving"

    def ask(self, name: str = "server.sock") -> wire.ServerView:
        with Client(Address(self._local / name)) as client:
            return client.get_server()


def second_server(rig: Rig) -> subprocess.CompletedProcess[str]:
    """Return what another server with the rig's environment prints before it ends."""
    command = [sys.executable, "-m", "riseml.server"]
    return subprocess.run(command, env=rig.environ(), capture_output=True, text=True, check=False, timeout=DEADLINE)


@pytest.fixture
def make_process_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Servers without Docker, each with a home of its own."""
    made: list[Rig] = []

    def make(name: str, **environment: str) -> Rig:
        made.append(Rig(tmp_path / name, None, **environment))
        return made[-1]

    yield make
    for rig in made:
        rig.clean_up()
        rig.__exit__()


def test_a_second_server_of_a_home_is_refused(process_rig: Rig) -> None:
    rig = process_rig
    assert rig.process is not None
    done = second_server(rig)
    assert done.returncode == 4
    assert done.stderr == (
        f"error: process {rig.process.pid} is the server of {rig.home} already; "
        "`riseml server stop` ends it; another RISEML_HOME has a server of its own\n"
    )
    assert rig.get("/v1/server")["pid"] == rig.process.pid


def test_a_standby_on_sqlite_waits_for_the_lock_of_the_home_and_takes_over(
    make_process_rig: Callable[..., Rig],
) -> None:
    rig = make_process_rig("home")
    rig.start()
    rig.submit(single(f"{COUNTER}; {GO}"))
    rig.wait_state("1", "RUNNING")
    waits = rig.socket.with_name("standby.sock")
    with (rig.home / "standby.log").open("wb") as log:
        standby = subprocess.Popen(
            [Path(sys.executable).with_name("riseml"), "server", "run", "--standby"],
            env=rig.environ(),
            stdout=log,
            stderr=log,
        )
    try:
        rig.wait("it waits", waits.exists)
        first = rig.process
        assert first is not None
        told = run_riseml(["server", "status"], rig.home, rig.environ()).stdout
        assert f"process {first.pid}, since" in told
        assert f"Standby: riseml {__version__}, process {standby.pid}, since" in told
        assert f"Waits for: the server of {rig.home}" in told
        rig.kill()
        rig.wait("it serves", lambda: rig.socket.exists() and not waits.exists())
        rig.process = standby
        rig.wait("it answers", rig._answers)
        assert (rig.get("/v1/server")["pid"], rig.get("/v1/server")["state"]) == (standby.pid, "serving")
        rig.go_file("1").touch()
        assert rig.wait_closed("1")["state"] == "FINISHED"
        assert numbers(rig.lines("1"), "1.train") == list(range(COUNT))
    finally:
        standby.terminate()
        standby.wait(DEADLINE)
    assert standby.returncode == 0


@needs_namespaces
def test_a_standby_on_another_machine_takes_over_the_home_that_both_share(
    make_process_rig: Callable[..., Rig], postgres_store: str, tmp_path: Path
) -> None:
    """The other machine is a mount namespace with another id of the machine."""
    rig = make_process_rig("home", RISEML_STORE=postgres_store, RISEML_TAKEOVER_AFTER="5")
    address = f"127.0.0.1:{find_free_port()}"
    (rig.home / "pool.yml").write_text(UNREACHED)
    (rig.home / "server.yml").write_text(f"listen: {address}\nallow: [plaintext]\n")
    other = tmp_path / "machine-id"
    other.write_text(f"{uuid.uuid4().hex}\n")
    with Machine(rig, tmp_path / "first") as first, Machine(rig, tmp_path / "second", other) as second:
        first.start()
        rig.wait("it serves", first.answers)
        assert first.ask()["holder"] == ""
        second.start()
        rig.wait("it waits", second.waits)
        waiting = second.ask("standby.sock")
        assert waiting["holder"].startswith(f"process {first.pid} on ")
        assert waiting["holder_address"] == f"https://{address}"
        first.kill()
        rig.wait("it serves", second.answers)
        assert (second.ask()["id"], second.ask()["pid"]) == ((rig.home / "server.id").read_text().strip(), second.pid)
        copied = shutil.copytree(rig.home, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
        copy = {"RISEML_HOME": str(copied), "RISEML_LOCAL": str(tmp_path / "third")}
        done = subprocess.run(
            [sys.executable, *SERVER, "--standby"],
            env={**second.environ, **copy},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
    assert done.returncode == StoreError.exit_code
    assert f"RISEML_HOME {copied} is not the folder of process {second.pid} on " in done.stderr


def test_a_home_whose_store_is_gone_gets_no_new_store(process_rig: Rig) -> None:
    rig = process_rig
    rig.submit(single("true"))
    rig.wait_closed("1")
    rig.stop()
    kept = (rig.home / "riseml.db").read_bytes()
    for damage in (partial(os.truncate, rig.home / "riseml.db", 0), (rig.home / "riseml.db").unlink):
        damage()
        done = second_server(rig)
        assert done.returncode == 5
        assert f"error: the store {rig.home}/riseml.db is gone or empty, and this home had one; restore" in done.stderr
    (rig.home / "riseml.db").write_bytes(kept)
    rig.start()
    assert rig.experiment("1")["state"] == "FINISHED"


def test_the_store_of_another_home_is_refused(make_process_rig: Callable[..., Rig]) -> None:
    one, other = make_process_rig("one"), make_process_rig("other")
    for rig in (one, other):
        rig.start()
        rig.stop()
    shutil.copy(one.home / "riseml.db", other.home / "riseml.db")
    done = second_server(other)
    assert done.returncode == 5
    assert f"the store is that of server {one.server_id()[:8]}" in done.stderr


def test_a_locked_store_delays_the_server_and_breaks_nothing(process_rig: Rig) -> None:
    rig = process_rig
    rig.submit(gang({"master": f"{COUNTER}; {GO}", "worker.1": "exit 0", "worker.2": "exit 0"}))
    rig.wait_state("1", "RUNNING")
    go = rig.go_file("1")
    with closing(sqlite3.connect(rig.home / "riseml.db", isolation_level=None)) as stranger:
        stranger.execute("BEGIN EXCLUSIVE")
        go.touch()
        rig.wait_end("master")
        assert rig.experiment("1")["state"] == "RUNNING", "the server still reads, and no server writes"
        refused = rig.post("/v1/experiments", rig.submission(single("true")))
        said = rig.wait("the server says why it decides nothing", lambda: rig.get("/v1/server")["problem"])
        stranger.execute("ROLLBACK")
    assert refused.status_code == 503, refused.text
    error = refused.json()["error"]
    assert error["kind"] == "StoreError"
    assert "riseml.db is locked by another process" in error["message"]
    assert "riseml.db is locked by another process" in said
    assert rig.wait_closed("1")["state"] == "FINISHED"
    assert rig.get("/v1/server")["problem"] == ""
    assert numbers(rig.lines("1"), "1.master") == list(range(COUNT))
    assert rig.submit(single("true"))["id"] == "2", "what was refused was not accepted"
    rig.wait_closed("2")


def test_a_second_home_on_one_database_is_refused(make_process_rig: Callable[..., Rig], postgres_store: str) -> None:
    one = make_process_rig("one", RISEML_STORE=postgres_store)
    other = make_process_rig("other", RISEML_STORE=postgres_store)
    one.start()
    assert one.process is not None
    done = second_server(other)
    assert done.returncode == 5
    assert f"is used by process {one.process.pid} on " in done.stderr
    assert f"with the home {one.home}; a database has one server" in done.stderr


@pytest.fixture
def own_postgres() -> Iterator[Path]:
    """The folder of a PostgreSQL that a test may harm."""
    folder = Path(tempfile.mkdtemp(prefix="riseml-pg-"))
    yield folder
    subprocess.run([SCRIPTS / "down", folder], check=True)


def test_jobs_run_on_while_postgresql_restarts(make_process_rig: Callable[..., Rig], own_postgres: Path) -> None:
    rig = make_process_rig("home", RISEML_STORE=start_postgres(own_postgres))
    rig.start()
    rig.submit(gang({"master": f"{COUNTER}; {GO}", "worker.1": COUNTER, "worker.2": "exit 0"}, finish_grace=DEADLINE))
    rig.wait_state("1", "RUNNING")
    go = rig.go_file("1")
    subprocess.run([SCRIPTS / "halt", "immediate", own_postgres], check=True)
    assert rig.post("/v1/experiments", rig.submission(single("true"))).status_code == 503
    told = run_riseml(["status"], rig.home, rig.environ())
    assert told.returncode == 5
    assert told.stderr.startswith("warning: the riseml server can decide nothing now: the store postgresql")
    assert "is PostgreSQL running there?" in told.stderr
    go.touch()
    rig.wait_end("master")
    assert rig.process is not None
    assert rig.get("/v1/server")["pid"] == rig.process.pid
    assert (rig.home / "server.log").read_text().count(" serves ") == 1, "no command has started another server"
    assert rig.process.poll() is None, "the server lives on without its store"
    start_postgres(own_postgres)
    found = rig.wait_closed("1")
    assert (found["state"], {job["attempt"] for job in found["jobs"]}) == ("FINISHED", {1})
    lines = rig.lines("1")
    assert numbers(lines, "1.master") == numbers(lines, "1.worker.1") == list(range(COUNT))
    assert rig.submit(single("true"))["id"] == "2"
    rig.wait_closed("2")
    assert "Traceback" not in (rig.home / "server.log").read_text()
