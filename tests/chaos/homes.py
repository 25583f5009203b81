"""Copies of a home whose servers are started while the jobs of the original run."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import make_open_scene
from tests.chaos.sites import Fault, Site
from tests.support.rig import Rig
from tests.support.server_process import SERVER
from tests.support.waiting import DEADLINE


def home_faults() -> list[Fault]:
    """Return a fault for each kind."""
    return [Fault("home copied while its jobs run", use_copies)]


def use_copies(site: Site) -> Tally:
    """Copy the home of a running experiment in each way, with and without the server of the original, and start the
    server of each copy: it is refused, or it has another identity, and the experiment goes on.
    """
    scene = make_open_scene()
    notes: list[str] = []
    with site.rig() as rig:
        rig.start()
        rig.submit(scene.config)
        rig.wait("it runs", lambda: rig.state() == "RUNNING")
        rig.wait("it prints", lambda: len(rig.lines("1", follow=False)) > 2)
        for copy_home in (_copy_folder, _back_up_store):
            notes += _start_refused(rig, copy_home, site.home())
        rig.kill()
        notes += _start_refused(rig, _copy_folder, site.home())
        with _start_as_new(rig, site.home(), site) as other:
            other.wait("the other server has looked at its host", lambda: other.get("/v1/system"))
        rig.start()
        rig.let_go()
        tally = judge(rig, scene, 4)
    return replace(tally, notes=(*tally.notes, *notes))


def _start_refused(rig: PatientRig, copy_home: Callable[[Path, Path], None], copy: Path) -> list[str]:
    """Start a server on a copy, and return what is wrong."""
    copy_home(rig.home, copy)
    environment = {**rig.environ(), "RISEML_HOME": str(copy)}
    done = subprocess.run(
        [sys.executable, *SERVER], env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    refused = f"{copy} is a copy: its experiments belong to the home {rig.home} of this machine, which is still there"
    right = done.returncode == 5 and refused in done.stderr
    return [] if right else [f"{copy}: the server ended with {done.returncode}: {done.stderr}"]


@contextmanager
def _start_as_new(rig: PatientRig, copy: Path, site: Site) -> Iterator[Rig]:
    """Give the server of a copy from which a user has removed the store, as a home that starts afresh."""
    _copy_folder(rig.home, copy)
    for path in (*copy.glob("riseml.db*"), copy / "server.id"):
        path.unlink()
    with Rig(copy, site.engine) as other:
        yield other


def _copy_folder(home: Path, copy: Path) -> None:
    subprocess.run(["cp", "-a", home, copy], check=False)  # it cannot copy files that jobs remove meanwhile


def _back_up_store(home: Path, copy: Path) -> None:
    copy.mkdir()
    with closing(sqlite3.connect(home / "riseml.db")) as one, closing(sqlite3.connect(copy / "riseml.db")) as other:
        one.backup(other)
    shutil.copytree(home / "logs", copy / "logs")
