"""Copies of data to a host that shares nothing with the server: the server or the engine dies, the disk is full.

The host is an engine on this machine behind a relay over TCP, so that the server takes it for another machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import docker

from riseml.base.faultpoints import Point
from riseml.executors.docker.labels import DATA, SERVER
from tests.chaos.dockerd import PrivateEngine, private_engine
from tests.chaos.engines import restart_engine
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.proxy import Effect, Moment, Proxy, Rule
from tests.chaos.scenes import Scene, count_lines, write_solo
from tests.chaos.sites import Fault, Site
from tests.chaos.stores import allow_store, open_store
from tests.support.waiting import DEADLINE

COPY_POINTS = {
    Point.COPY_SENT: "archive on a host, not noted",
    Point.COPY_ARRIVED: "data on a host, not compared",
    Point.COPY_COMPARED: "data compared, not noted",
}
_ROOM = 40  # MiB for the volumes of a host: the data is larger
_DOCKER = ("docker",)


def copy_faults() -> list[Fault]:
    """Return a fault for each point, and those of the host."""
    return [
        *(Fault(f"kill -9 at {point.value}: {text}", _copy_at(point), _DOCKER) for point, text in COPY_POINTS.items()),
        Fault("dockerd kill -9 while data is copied", kill_engine_while_copying, _DOCKER),
        Fault("disk of the host full while data is copied", fill_disk_of_host, _DOCKER),
    ]


@functools.cache
def _make_files() -> dict[str, bytes]:
    """Return more than one archive holds. It is made for the fault that needs it: all workers import this module."""
    return {"x/a": os.urandom(1 << 20) * 2, "x/b": os.urandom(1 << 20) * 64}


def copy_with_crashes(site: Site, *points: Point) -> Tally:
    """Run an experiment whose data several servers in turn bring to its host."""
    assert site.engine is not None, "the host is an engine"
    scene, orders = _make_scene(), [f"{point.value}:1" for point in points]
    with Proxy(None, site.engine) as relay, _start_rig(site, relay, orders) as rig:
        rig.run_scene(scene)
        tally = rig.retry_until_answered(lambda: judge(rig, scene, rig.deaths))
        return replace(tally, notes=(*tally.notes, *_check_copies(rig, site.engine, count=1)))


def kill_engine_while_copying(site: Site) -> Tally:
    """Kill and restart the engine after it got an archive, and while it is asked for what it has."""
    assert site.engine is not None, "the image comes from an engine"
    scene = _make_scene()
    with private_engine(site.folder, site.engine, live_restore=True) as engine:

        def restart() -> Effect:
            restart_engine(engine, signal.SIGKILL)
            return Effect.CUT

        sent = Rule(r"PUT .*-fill-.*/archive", Moment.AFTER, restart)
        read = Rule(r"GET .*-read-.*/archive", Moment.DURING, restart)
        with Proxy(None, engine.url, sent, read) as relay, _start_rig(_enter(site, engine), relay) as rig:
            rig.run_scene(scene)
            tally = judge(rig, scene, sent.done + read.done)
            few = () if tally.injected == 2 else (f"the engine died {tally.injected} times",)
            return replace(tally, notes=(*tally.notes, *few, *_check_copies(rig, engine.url, count=1)))


def fill_disk_of_host(site: Site) -> Tally:
    """Copy data to a host whose disk is too small for it: one sentence, nothing of it is left, the host goes on."""
    assert site.engine is not None, "the image comes from an engine"
    full = replace(_make_scene(), state="FAILED", reasons=frozenset({"DATA_FAILED"}), lines={}, attempts=None)
    small = Scene(write_solo(count_lines(3)), lines={"train": 3})
    with private_engine(site.folder, site.engine, live_restore=True) as engine:
        volumes = engine.folder / "data" / "volumes"  # a disk of its own; the end of the engine unmounts it
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_ROOM}m,mode=711", "chaos", volumes], check=True)
        with Proxy(None, engine.url) as relay, _start_rig(_enter(site, engine), relay) as rig:
            rig.run_scene(full)
            tally = judge(rig, full, 1)
            message = str(rig.experiment("1")["message"])
            rig.submit(small.config)
            tally += judge(rig, small, 0, "2")
            notes = () if "the disk of the host is full" in message else (message,)
            return replace(tally, notes=(*tally.notes, *notes, *_check_copies(rig, engine.url, count=0)))


def _make_scene() -> Scene:
    """Return an experiment whose job sees exactly what the store has."""
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in _make_files().items())
    check = f"cd $DATA_DIR; printf '{sums}' | sha256sum -c - >/dev/null && [ $(find . -type f | wc -l) = 2 ] || exit 9"
    run = f"{check}; {count_lines(5)}"
    return Scene(write_solo(run, data=[{"from": "s3://runs/x", "to": "x"}]), lines={"train": 5})


def _enter(site: Site, engine: PrivateEngine) -> Site:
    return replace(site, engine=engine.url)


@contextmanager
def _start_rig(site: Site, relay: Proxy, orders: Iterable[str] = ()) -> Iterator[PatientRig]:
    """Give a rig, not started yet, with one host that shares no file with it, and a store with the data."""
    with open_store(site) as store, site.rig(orders) as rig:
        store.put("runs", _make_files())
        allow_store(rig, store)
        output = rig.home / "output"
        output.mkdir()
        far = {"name": "far", "url": relay.url, "insecure": True, "cpus": 2, "mem": "2GiB"}
        storage = {"output": str(output), "data": str(site.folder)}
        (rig.home / "pool.yml").write_text(json.dumps({"hosts": [far], "storage": storage}))
        try:
            yield rig
        finally:
            _remove_volumes(rig, str(site.engine))


def _check_copies(rig: PatientRig, engine: str, count: int) -> tuple[str, ...]:
    """Return what is wrong: the engine has other volumes than the whole copies of which the server knows."""
    held = json.loads((rig.home / "data-copies" / "far.json").read_text())
    known = sorted(one["volume"] for one in held)
    with docker.APIClient(base_url=engine, version="auto", timeout=DEADLINE) as api:
        there = sorted(row["Name"] for row in _list_volumes(api, rig))
    notes = [] if there == known else [f"{rig.home}: the host has {there}, and the server knows {known}"]
    whole = [one["whole"] for one in held]
    return (*notes, *(() if whole == [True] * count else (f"{rig.home}: copies that are whole: {whole}",)))


def _remove_volumes(rig: PatientRig, engine: str) -> None:
    if rig.process is None:
        return  # it never started
    rig.server_id()  # while the server runs
    rig.stop()
    rig.host.clean_up(rig.server_id())
    with docker.APIClient(base_url=engine, version="auto", timeout=DEADLINE) as api:
        for row in _list_volumes(api, rig):
            api.remove_volume(row["Name"], force=True)


def _list_volumes(api: docker.APIClient, rig: PatientRig) -> list[dict[str, str]]:
    wanted = {"label": [DATA, f"{SERVER}={rig.server_id()}"]}
    return list(api.volumes(filters=wanted)["Volumes"] or [])


def _copy_at(point: Point) -> Callable[[Site], Tally]:
    return lambda site: copy_with_crashes(site, point)
