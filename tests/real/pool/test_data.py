"""Hosts that share no folder: data is fetched once and copied to each, and an output comes back from its store."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from riseml.executors.docker.labels import DATA, JOB
from tests.real.data.test_saving import read_saved, save_now
from tests.real.data.test_stores import allow, read_lines
from tests.real.pool.conftest import Pool, PoolRig
from tests.support.object_store import ObjectStoreServer, run_object_store
from tests.support.rig import BASE

OBJECTS = {f"many/{n % 7}/file {n}": b"%d\n" % n for n in range(100)}
RUN = [
    "sha256sum <$DATA_DIR/big/large",
    "find $DATA_DIR/many -type f | wc -l",
    "cat '/data/many/3/file 10'",
    "if touch $DATA_DIR/many/x; then echo written; fi",
]


@functools.cache
def make_large() -> bytes:
    """Return more than one archive holds. It is made when a test needs it: all workers import this module."""
    return os.urandom(1 << 20) * 70


def expect_lines() -> list[str]:
    """Return what `RUN` prints."""
    return [f"{hashlib.sha256(make_large()).hexdigest()}  -", "100", "10"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    """A store with the bucket `datasets`."""
    with run_object_store(tmp_path_factory.mktemp("store")) as server:
        server.put("datasets", {"big/large": make_large(), "other/file": b"x" * (20 << 20), **OBJECTS})
        yield server


def make_config(host: str, run: list[str], *folders: str) -> str:
    """Return a riseml.yml whose job reads folders of the bucket on one host."""
    needs = {"cpus": 0.1, "mem": "64MiB", "labels": {"host": host}}
    data = [{"from": f"s3://datasets/{folder}", "to": folder} for folder in folders]
    return json.dumps({"project": "toaster", "train": {"image": BASE, "run": run, "data": data, "resources": needs}})


def list_volumes(rig: PoolRig, host: str) -> list[str]:
    """Return the volumes with data of this server on a host, as its engine lists them."""
    assert isinstance(rig.host, Pool)
    wanted = {"label": [DATA, f"io.riseml.server={rig.server_id()}"]}
    return sorted(row["Name"] for row in rig.host.engines[host].api.volumes(filters=wanted)["Volumes"] or [])


def run_on(rig: PoolRig, host: str, name: str, *folders: str, run: list[str] | None = None) -> list[str]:
    """Run an experiment on a host to its end; return what its job printed."""
    rig.submit(make_config(host, run or RUN, *folders))
    found = rig.wait_closed(name)
    assert found["state"] == "FINISHED", (found, rig.lines(name))
    lines = read_lines(rig, name)
    return [line for line in lines if "Read-only" not in line]


def count_copies(rig: PoolRig, host: str) -> int:
    """Return how often a set or more went to a host, as the server's log says."""
    return (rig.home / "server.log").read_text().count(f"has its data on {host}")


def test_each_host_gets_one_copy_and_jobs_share_it(pool_rig: PoolRig, store: ObjectStoreServer) -> None:
    rig = pool_rig
    allow(rig, store.entry("lab", "s3://datasets"))
    assert run_on(rig, "h2", "1", "big", "many") == expect_lines()
    assert run_on(rig, "h2", "2", "big", "many") == expect_lines()
    assert (len(list_volumes(rig, "h2")), list_volumes(rig, "h1"), count_copies(rig, "h2")) == (2, [], 1)
    assert run_on(rig, "h3", "3", "many", run=["cat '/data/many/3/file 10'"]) == ["10"]
    found: list[dict[str, Any]] = rig.post("/v1/pool/check").json()["findings"]
    copies = {one["host"]: one["message"] for one in found if one["topic"] == "copies"}
    assert copies == {
        "h2": "2 volumes have copies of fetched data",
        "h3": "one volume has a copy of fetched data",
    }
    # A volume that is gone is noticed before a job starts with an empty folder.
    assert isinstance(rig.host, Pool)
    for volume in list_volumes(rig, "h2"):
        rig.host.engines["h2"].api.remove_volume(volume)
    assert run_on(rig, "h2", "4", "big", "many") == expect_lines()
    # A host keeps no more than `data_cache` allows: what was not used for the longest time goes.
    rig.write_pool(data_cache={"size": "80MiB"})
    rig.wait_up()
    assert run_on(rig, "h2", "5", "other", run=["wc -c </data/other/file"]) == [str(20 << 20)]
    assert len(list_volumes(rig, "h2")) < 3
    left = [one for one in rig.get("/v1/leftovers", caches=True, days=0)["leftovers"] if one["kind"] == "data"]
    names = {(one["host"], one["name"].rpartition(" ")[2]) for one in left}
    assert {("h2", "s3://datasets/other"), ("h3", "s3://datasets/many")} <= names, left
    for host in ("h2", "h3"):
        for volume in list_volumes(rig, host):
            rig.host.engines[host].api.remove_volume(volume)


def test_another_attempt_on_an_engine_that_shares_nothing_begins_with_what_was_saved(
    pool_rig: PoolRig, store: ObjectStoreServer
) -> None:
    rig = pool_rig
    rig.write_pool(storage={"output": {"volume": f"own-{rig.server_id()[:8]}"}, "data": str(rig.shared_folder)})
    rig.wait_up()
    store.put("runs", {})
    allow(rig, store.entry("lab", saves=["s3://runs"]))
    run = [
        'if [ "$RISEML_ATTEMPT" = 1 ]; then mkdir $OUTPUT_DIR/deep; echo saved >$OUTPUT_DIR/deep/model',
        "trap 'exit 3' USR1; sleep 600 & wait; fi",
        "cat $OUTPUT_DIR/deep/model",
    ]
    save = {"to": "s3://runs/own", "every": "1h", "restore": True}
    needs = {"cpus": 0.1, "mem": "64MiB"}
    train = {"image": BASE, "run": "\n".join(run), "save": save, "retry": 1, "resources": needs}
    rig.submit(json.dumps({"project": "toaster", "train": train}))
    rig.wait_state("1", "RUNNING")
    rig.wait("the model is saved", lambda: "deep/model" in {one["path"] for one in save_now(rig)["manifest"]})
    (first,) = set(rig.where(running=True).values())
    assert isinstance(rig.host, Pool)
    assert rig.post(f"/v1/pool/hosts/{first}/drain").status_code == 200
    engine = rig.host.engines[first]
    (job,) = [row for row in engine.rows(rig.server_id(), running=True) if row["Labels"].get(JOB) == "train"]
    engine.api.kill(job["Id"], "USR1")
    found = rig.wait_closed("1")
    assert (found["state"], read_lines(rig, "1")) == ("FINISHED", ["saved"]), (found, rig.lines("1"))
    second = next(one["host"] for one in found["jobs"] if one["name"] == "train")
    restored = read_saved(rig)["restored"]
    assert (second != first, restored["attempt"], restored["files"]) == (True, 2, 1), restored
    rig.clean_up()  # the helpers that read the outputs would hold the volume for some seconds
    for one in rig.host.engines.values():
        for row in one.api.volumes(filters={"name": f"own-{rig.server_id()[:8]}"})["Volumes"] or []:
            one.api.remove_volume(row["Name"], force=True)
