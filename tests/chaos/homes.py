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
    return [Fault("home copied while its jobs run", use_copies), Fault("store loses an end", lose_ends)]


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


def lose_ends(site: Site) -> Tally:
    """Put a store of before the end of an experiment in the place of the newest one: it must not run again.

    First the journal of the home says that it has ended, then only the capsule of the server, then that in the output.
    """
    scene, found = make_open_scene(), Tally()
    with site.rig() as rig:
        rig.start()
        rig.submit(scene.config)
        rig.wait("it runs", lambda: rig.state() == "RUNNING")
        rig.wait("it prints", lambda: len(rig.lines("1", follow=False)) > 2)
        older = site.home()
        _back_up_store(rig.home, older)
        rig.let_go()
        rig.wait_closed("1")
        before = rig.experiment("1")
        for evidence in ("", "experiments.journal", "capsules"):
            rig.kill()
            for path in (*rig.home.glob("riseml.db*"), *rig.home.glob(evidence or "no such file")):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.copy(older / "riseml.db", rig.home)
            rig.start()
            tally = judge(rig, scene, 1)
            after = rig.experiment("1")
            same = all(before[name] == after[name] for name in ("state", "reason", "started_at", "ended_at"))
            found += tally if same else replace(tally, notes=(*tally.notes, f"{rig.home}: it is not what it was"))
    return found


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
