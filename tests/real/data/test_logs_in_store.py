"""TensorBoard over logs in S3: the job of the experiment itself, and the one that riseml starts afterwards."""

from __future__ import annotations

import json
from pathlib import Path

from tests.real.streams.conftest import Hands
from tests.real.streams.test_tensorboard import expect_points, open_forward, read_json, read_points
from tests.support.object_store import run_object_store
from tests.support.rig import BASE, GO, Rig

WRITER = """
import os, sys, time, types
sys.modules["tensorboard.compat.notf"] = types.ModuleType("notf")  # it writes with boto3, and not with TensorFlow
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("s3://runs/logs/run")
for step in range(5):
    value = Summary.Value(tag="loss", simple_value=1 / (step + 1))
    writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
writer.close()
print("written", flush=True)
"""


def make_config() -> str:
    """Return a training whose TensorBoard reads s3://runs/logs."""
    train = {
        "framework": "tensorflow",
        "image": BASE,
        "install": "pip install --no-compile tensorboard",  # to compile all of it takes longer than to run it
        "tensorflow": {"tensorboard": {"logdir": "s3://runs/logs"}},
        "resources": {"cpus": 0.1, "mem": "256MiB"},
        "store": "lab",
        "run": f"python3 write.py; {GO}",
    }
    return json.dumps({"project": "toaster", "train": train})


def test_scalars_come_from_a_real_store(process_rig: Rig, tmp_path: Path) -> None:
    rig, hands = process_rig, Hands(process_rig)
    (tmp_path / "store").mkdir()
    with run_object_store(tmp_path / "store") as store:
        store.put("runs", {})
        stores = rig.home / "stores.yml"
        stores.write_text(json.dumps({"stores": [store.entry("lab", "s3://runs", jobs=True)]}))
        stores.chmod(0o600)
        rig.submit(make_config(), {"write.py": WRITER})
        rig.wait("the scalars are written", lambda: "1.train written" in rig.lines("1", follow=False))
        rig.wait("TensorBoard listens", lambda: any("Press CTRL+C" in one for one in rig.lines("1", follow=False)))
        with open_forward(hands, "1") as (_, job, address):
            assert job == "1.tensorboard"
            rig.wait("it has read them", lambda: "run" in read_json(address, "plugin/scalars/tags"))
            assert read_points(address, "run") == expect_points(1)
        rig.go_file("1").touch()
        assert rig.wait_closed("1")["state"] == "FINISHED", rig.lines("1")
        with open_forward(hands, "1") as (_, job, address):
            assert job == "2.tensorboard"
            rig.wait("it has read them", lambda: "1/run" in read_json(address, "plugin/scalars/tags"))
            assert read_points(address, "1/run") == expect_points(1)
        rig.post("/v1/experiments/2/kill")
        rig.wait_closed("2")
        stores.write_text(json.dumps({"stores": [store.entry("lab", "s3://x", jobs=True, secret_access_key="no")]}))
        code, _, said = hands.call("tensorboard", "1")
        assert (code, "s3://runs/logs cannot be read: the store answers SignatureDoesNotMatch" in said) == (3, True)
        stores.write_text(json.dumps({"stores": [store.entry("lab", "s3://runs")]}))
        code, _, said = hands.call("tensorboard", "1")
        assert (code, "does not give the keys of lab to jobs" in said) == (4, True)
