"""Servers that die while they fetch data, copy outputs into a store, and bring them back."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from riseml.base.faultpoints import Point
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, count_lines, write_solo
from tests.chaos.sites import Fault, Site
from tests.support.object_store import ObjectStoreServer, run_object_store

FETCH_POINTS = {
    Point.DATA_FETCHING: "a part of data is fetched",
    Point.DATA_FETCHED: "data fetched, not in its place",
}
SAVE_POINTS = {
    Point.OUTPUT_SENDING: "a part of an output saved",
    Point.OUTPUT_SENT: "files saved, no manifest yet",
    Point.OUTPUT_NAMED: "a manifest, files not in place",
    Point.OUTPUT_SAVED: "an output saved, not noted",
}
RESTORE_POINTS = {
    Point.OUTPUT_RESTORING: "a part of an output restored",
    Point.OUTPUT_RESTORED: "output restored, not noted",
}
_SAVE = {"to": "s3://runs", "every": "1s"}


def store_faults() -> list[Fault]:
    """Return a fault for each point."""
    return [
        *(Fault(f"kill -9 at {point.value}: {text}", _fetch_at(point)) for point, text in FETCH_POINTS.items()),
        *(Fault(f"kill -9 at {point.value}: {text}", _save_at(point)) for point, text in SAVE_POINTS.items()),
        *(Fault(f"kill -9 at {point.value}: {text}", _restore_at(point)) for point, text in RESTORE_POINTS.items()),
    ]


def fetch_with_crashes(site: Site, *points: Point) -> Tally:
    """Run an experiment whose data several servers in turn begin to fetch: its job gets exactly what the store has."""
    orders = [f"{point.value}:{2 if point is Point.DATA_FETCHING else 1}" for point in points]
    digest = hashlib.sha256(_make_data()).hexdigest()
    run = f'[ "$(sha256sum <$DATA_DIR/x/file)" = "{digest}  -" ] || exit 9; {count_lines(20)}'
    scene = Scene(write_solo(run, data=[{"from": "s3://runs/x", "to": "x"}]), lines={"train": 20})
    with open_store(site) as store, site.rig(orders) as rig:
        store.put("runs", {"x/file": _make_data()})
        allow_store(rig, store)
        rig.run_scene(scene)
        tally = rig.retry_until_answered(lambda: judge(rig, scene, rig.deaths))
        left = sorted(path.name for path in (rig.home / "data-cache" / "parts").glob("*"))
        return replace(tally, notes=(*tally.notes, *(f"{rig.home}: {name} is left of a fetch" for name in left)))


@functools.cache
def _make_data() -> bytes:
    """Return several ranges of bytes. They are made for the fault that needs them: all workers import this module."""
    return os.urandom(1 << 20) * 20


def save_with_crashes(site: Site, *points: Point) -> Tally:
    """Run an experiment whose files change all the time, and whose servers die while they copy them."""
    scene = Scene(write_solo(count_lines(60), save=_SAVE), lines={"train": 60})
    with open_store(site) as store, site.rig([f"{point.value}:1" for point in points]) as rig:
        store.put("runs", {})
        allow_store(rig, store)
        rig.run_scene(scene)
        tally = rig.retry_until_answered(lambda: judge(rig, scene, rig.deaths))
        notes = rig.retry_until_answered(lambda: _check_saved(rig, store))
        return replace(tally, notes=(*tally.notes, *notes))


def restore_with_crashes(site: Site, *points: Point) -> Tally:
    """Run an experiment whose output is lost between two attempts, and whose servers die while they bring it back."""
    first = 'mkdir -p "$OUTPUT_DIR/deep"; echo saved >"$OUTPUT_DIR/deep/model"'
    wait = 'while [ -e "$OUTPUT_DIR/deep/model" ]; do sleep 0.05; done; exit 3'
    check = 'grep -q saved "$OUTPUT_DIR/deep/model" || exit 9'
    run = f'if [ "$RISEML_ATTEMPT" = 1 ]; then {first}; {wait}; fi; {check}; {count_lines(20)}'
    save = {**_SAVE, "restore": True}
    scene = Scene(write_solo(run, retry=1, save=save), lines={"train": 20}, attempts=2, promised=False)
    with open_store(site) as store:
        store.put("runs", {})
        loss = _Loss(store)
        with site.rig(loss.order_until(points)) as rig:
            allow_store(rig, store)
            rig.on_death = lambda: loss.lose_output(rig)
            rig.run_scene(scene)
            tally = rig.retry_until_answered(lambda: judge(rig, scene, rig.deaths))
            notes = rig.retry_until_answered(lambda: _check_saved(rig, store))
            return replace(tally, notes=(*tally.notes, *notes))


class _Loss:
    """The loss of an output whose model is saved, while no server runs."""

    def __init__(self, store: ObjectStoreServer) -> None:
        self._store = store
        self._is_lost = False

    def order_until(self, points: tuple[Point, ...]) -> Iterator[str]:
        """Yield the order of each server: it dies after a copy until the output is lost, and then at these points."""
        while not self._is_lost:
            yield f"{Point.OUTPUT_SAVED.value}:1"
        for point in points:
            yield f"{point.value}:1"

    def lose_output(self, rig: PatientRig) -> None:
        """Remove the output, as the loss of its host does, and wait for the end of its job."""
        if self._is_lost or not any(key.endswith("deep/model") for key in self._store.list("runs", _find_folder(rig))):
            return
        self._is_lost = True
        output = next((rig.home / "output").glob("*/chaos/1"))
        for path in output.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        rig.wait_end("train")


def _check_saved(rig: PatientRig, store: ObjectStoreServer) -> tuple[str, ...]:
    """Return what is wrong with what is saved: it is the output, whole, and nothing else."""
    found = rig.get("/v1/experiments/1/saved")
    folder = found["place"].removeprefix("s3://runs/")
    manifest = json.loads(store.get("runs", f"{folder}/riseml-saved.json"))
    output = Path(rig.experiment("1")["output"])
    notes = [] if found["state"] == "saved" else [f"{rig.home}: the output is {found['state']}"]
    for one in manifest["files"]:
        data = store.get("runs", f"{folder}/{one['key']}")
        if (len(data), hashlib.sha256(data).hexdigest()) != (one["size"], one["sha256"]):
            notes.append(f"{rig.home}: {one['key']} is not what the manifest names")
        if data != (output / one["path"]).read_bytes():
            notes.append(f"{rig.home}: {one['path']} is not the file of the output")
    named = {one["path"] for one in manifest["files"]}
    there = {str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()}
    if named != there:
        notes.append(f"{rig.home}: saved and not there, or there and not saved: {sorted(named ^ there)}")
    aside = [key for key in store.list("runs", folder) if ".riseml-saving" in key]
    return (*notes, *(f"{rig.home}: {key} is left aside" for key in aside))


def _find_folder(rig: PatientRig) -> str:
    """Return the folder of the output in the bucket."""
    return str(next((rig.home / "output").glob("*/chaos/1")).relative_to(rig.home / "output"))


def allow_store(rig: PatientRig, store: ObjectStoreServer) -> None:
    """Let the server of a rig read and write the bucket `runs`."""
    path = rig.home / "stores.yml"
    path.write_text(json.dumps({"stores": [store.entry("lab", "s3://runs", saves=["s3://runs"])]}))
    path.chmod(0o600)


@contextmanager
def open_store(site: Site) -> Iterator[ObjectStoreServer]:
    """Run a store with its files beside the homes of a site."""
    folder = site.folder / f"store-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    with run_object_store(folder) as store:
        yield store


def _fetch_at(point: Point) -> Callable[[Site], Tally]:
    return lambda site: fetch_with_crashes(site, point)


def _save_at(point: Point) -> Callable[[Site], Tally]:
    return lambda site: save_with_crashes(site, point)


def _restore_at(point: Point) -> Callable[[Site], Tally]:
    return lambda site: restore_with_crashes(site, point)
