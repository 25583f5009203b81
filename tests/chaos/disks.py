"""A server that dies while it makes room on a full disk."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from riseml.base.faultpoints import Point
from tests.chaos.dockerd import private_engine
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, count_lines, make_open_scene, write_solo
from tests.chaos.sites import Fault, Site
from tests.support.disks import mount_disk, mount_ext4

DISCARD_POINTS = (Point.DISCARDING,)

_SETTINGS = {"RISEML_CLEAN_ABOVE": "85", "RISEML_BUILD_NETWORK": "none"}
_SIZES = {"process": (40, 25, 45), "docker": (90, 60, 110)}
"""Megabytes of three environments: the first and the third one together do not fit beside the second one."""


def disk_faults() -> list[Fault]:
    """Return the faults of disks on which the server makes room."""
    return [Fault(f"kill -9 at {Point.DISCARDING.value}: room is made, nothing gone yet", die_in_removals)]


def die_in_removals(site: Site) -> Tally:
    """Fill the disk of a host with environments. On processes the server dies when an environment is not complete any
    more, and on an engine two servers die; the next one finishes that, and what is in use stays.
    """
    orders = [f"{Point.DISCARDING.value}:1"] * (1 if site.engine is None else 2)
    unused, used, late = map(_write_step, _SIZES[site.name])
    lines = {"train": 3}
    first, last = (Scene(write_solo(count_lines(3), install=[step]), lines=lines) for step in (unused, late))
    running = make_open_scene(install=[used])
    with _enter_small_site(site) as small, small.rig(orders, **_SETTINGS) as rig:
        rig.start_with_order()
        rig.submit(first.config)
        rig.wait_closed("1")
        rig.submit(running.config)
        rig.wait_state("2", "RUNNING")
        body = rig.submission(last.config)
        assert rig.post("/v1/experiments", body).status_code == 201
        rig.wait("it has its room", lambda: rig.retry_until_answered(lambda: rig.experiment("3")["closed"]))
        running_still = rig.experiment("2")["state"] == "RUNNING"
        rig.wait("no half environment is left", lambda: not _list_half_environments(rig))
        rig.let_go()
        rig.wait_closed("2")
        rig.submit(first.config)
        rig.wait_closed("4")
        tally = judge(rig, running, rig.deaths, "2")
        for name, scene in (("1", first), ("3", last), ("4", first)):
            tally += judge(rig, scene, 0, name)
        notes = () if (running_still, rig.deaths) == (True, len(orders)) else (f"the server died {rig.deaths} times",)
        return replace(tally, notes=(*tally.notes, *notes))


@contextmanager
def _enter_small_site(site: Site) -> Iterator[Site]:
    """Yield a site whose host has a small disk: the one of the home, or of an engine."""
    if site.engine is None:
        with mount_disk(site.folder, 128) as disk:
            yield replace(site, folder=disk)
        return
    with (
        mount_ext4(site.folder, 600) as disk,
        private_engine(disk, site.engine, live_restore=False) as engine,
    ):
        yield replace(site, engine=engine.url)


def _write_step(megabytes: int) -> str:
    """Return an install step of an environment of its own, on processes and in containers."""
    return f"head -c {megabytes}000000 /dev/zero > ${{VIRTUAL_ENV:-}}/content # {uuid.uuid4().hex}"


def _list_half_environments(rig: PatientRig) -> list[str]:
    folders = (path for path in (rig.home / "environments").glob("*") if "." not in path.name)
    return [folder.name for folder in folders if not (folder / ".ready").exists()]
