"""`riseml tensorboard`: the real TensorBoard of an experiment, its scalars read through the forward."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.real.streams.conftest import Hands
from tests.support.rig import GO, Rig, single

TENSORFLOW = "tensorflow/tensorflow:2.21.0"
WRITER = """
import os, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(os.environ["OUTPUT_DIR"] + "/run")
for step in range(5):
    value = Summary.Value(tag="loss", simple_value=1.0 / (step + 1))
    writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
writer.close()
print("written", flush=True)
"""


def read_json(address: str, path: str) -> Any:
    """Return an answer of TensorBoard."""
    with urllib.request.urlopen(f"{address}/data/{path}", timeout=60) as answer:
        return json.load(answer)


def test_scalars_come_through_the_forward(docker_rig: Rig) -> None:
    section = {"version": "2.21.0", "tensorboard": True}
    keys = {"framework": "tensorflow", "image": TENSORFLOW, "tensorflow": section}
    resources = {"cpus": 0.1, "mem": "512MiB"}
    docker_rig.submit(single(f"python3 write.py; {GO}", resources=resources, **keys), {"write.py": WRITER})
    docker_rig.wait_state("1", "RUNNING")
    docker_rig.wait("the scalars are written", lambda: "1.train written" in docker_rig.lines("1", follow=False))
    hands = Hands(docker_rig)
    docker_rig.wait("TensorBoard listens", lambda: _listens(hands))
    assert b"TensorBoard: `riseml tensorboard 1` opens it" in hands.call("status", "1")[1]
    process = hands.start("tensorboard", "1", "--port", "0", "--json")
    assert process.stdout is not None
    try:
        (shown,) = json.loads(process.stdout.readline())["forwards"]
        assert (shown["job"], shown["port"]) == ("1.tensorboard", 6006)
        address = shown["address"]
        docker_rig.wait("it has read them", lambda: "run" in read_json(address, "plugin/scalars/tags"))
        points = read_json(address, "plugin/scalars/scalars?run=run&tag=loss")
        assert [(step, round(value, 3)) for _, step, value in points] == [
            (step, round(1 / (step + 1), 3)) for step in range(5)
        ]
    finally:
        process.kill()
        process.communicate()


def _listens(hands: Hands) -> bool:
    """Return whether TensorBoard listens; it needs some seconds."""
    return any("Press CTRL+C to quit" in line for line in hands.rig.lines("1.tensorboard", follow=False))


def test_an_experiment_without_tensorboard_says_so(process_rig: Rig) -> None:
    process_rig.submit(single(GO))
    process_rig.wait_state("1", "RUNNING")
    code, _, err = Hands(process_rig).call("tensorboard", "1")
    assert (code, "experiment 1 has no TensorBoard" in err) == (3, True)
