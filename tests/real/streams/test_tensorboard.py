"""`riseml tensorboard`: the real TensorBoard, its scalars read through the forward."""

from __future__ import annotations

import json
import signal
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import Any

from tests.real.streams.conftest import Hands
from tests.support.rig import GO, Rig, single
from tests.support.waiting import DEADLINE

TENSORFLOW = "tensorflow/tensorflow:2.21.0"
WRITER = """
import os, time
import tensorboard.compat
tensorboard.compat.notf = True  # it writes without TensorFlow, whose import takes seconds
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(os.environ["OUTPUT_DIR"] + "/run")
for step in range(5):
    value = Summary.Value(tag="loss", simple_value=float(os.environ.get("LR", 1)) / (step + 1))
    writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
writer.close()
print("written", flush=True)
"""


def read_json(address: str, path: str) -> Any:
    """Return an answer of TensorBoard."""
    with urllib.request.urlopen(f"{address}/data/{path}", timeout=DEADLINE) as answer:
        return json.load(answer)


@contextmanager
def open_forward(hands: Hands, *words: str) -> Iterator[tuple[Popen[bytes], str, str]]:
    """Run `riseml tensorboard`; give its process, its job and its address."""
    process = hands.start("tensorboard", *words, "--port", "0", "--json")
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.communicate()
        (shown,) = json.loads(line)["forwards"]
        yield process, shown["job"], shown["address"]
    finally:
        process.kill()
        process.communicate()


def read_points(address: str, run: str) -> list[tuple[int, float]]:
    """Return the steps and values of `loss` in one run."""
    query = urllib.parse.urlencode({"run": run, "tag": "loss"})
    return [(step, round(value, 3)) for _, step, value in read_json(address, f"plugin/scalars/scalars?{query}")]


def expect_points(rate: float) -> list[tuple[int, float]]:
    """What the script has written."""
    return [(step, round(rate / (step + 1), 3)) for step in range(5)]


def train(rig: Rig, run: str, **keys: Any) -> None:
    """Submit a training of TensorFlow that writes its loss."""
    section = {"version": "2.21.0", "tensorboard": True}
    resources = {"cpus": 0.1, "mem": "512MiB"}
    whole = {"framework": "tensorflow", "image": TENSORFLOW, "tensorflow": section, "resources": resources, **keys}
    rig.submit(single(run, **whole), {"write.py": WRITER})


def test_scalars_come_through_the_forward(docker_rig: Rig) -> None:
    """Of a running experiment with its own TensorBoard, then of ended ones and a set in another one."""
    hands = Hands(docker_rig)
    train(docker_rig, f"python3 write.py; {GO}")
    docker_rig.wait_state("1", "RUNNING")
    docker_rig.wait("the scalars are written", lambda: "1.train written" in docker_rig.lines("1", follow=False))
    docker_rig.wait("TensorBoard listens", lambda: _listens(hands))
    address = docker_rig.get("/v1/experiments/1")["tensorboard"]
    assert f"TensorBoard: {address} (`riseml tensorboard 1` opens it)" in hands.call("status", "1")[1].decode()
    docker_rig.wait("it has read them", lambda: "run" in read_json(address, "plugin/scalars/tags"))
    with open_forward(hands, "1") as (_, job, address):
        assert job == "1.tensorboard"
        docker_rig.wait("it has read them", lambda: "run" in read_json(address, "plugin/scalars/tags"))
        assert read_points(address, "run") == expect_points(1)
    docker_rig.go_file("1").touch()
    train(
        docker_rig, "python3 write.py", tensorflow={"version": "2.21.0"}, parameters={"lr": [0.5, 0.25]}, concurrency=2
    )
    docker_rig.wait_closed("2")
    assert docker_rig.wait_closed("1")["tensorboard"] is None
    _check_several(docker_rig, hands)
    host = f"/v1/pool/hosts/{docker_rig.host.name}"
    docker_rig.post(f"{host}/drain")  # it begins when its log is followed, however late that is
    order = {"experiments": ["2"], "left_after": 1}
    assert docker_rig.post("/v1/tensorboards", order).json()["type"] == "tensorboard"
    with docker_rig.client() as client, client.stream("GET", "/v1/experiments/4/logs") as answer:
        lines = answer.iter_lines()
        assert next(lines), "its state"
        docker_rig.post(f"{host}/resume")
        assert any("Press CTRL+C to quit" in line for line in lines), "it waits for who follows its log"
    left = docker_rig.wait_closed("4")
    assert (left["state"], left["reason"], left["message"]) == ("FINISHED", "LEFT", "No client uses it any more")


def _check_several(rig: Rig, hands: Hands) -> None:
    with open_forward(hands, "2", "1", "2.1") as (process, job, address):
        runs = {"1/run": 1.0, "2.1 lr=0.5/run": 0.5, "2.2 lr=0.25/run": 0.25}
        rig.wait("it has read them", lambda: set(read_json(address, "plugin/scalars/tags")) == set(runs))
        for run, rate in runs.items():
            assert read_points(address, run) == expect_points(rate)
        shown = hands.call("status", "3")[1].decode()
        assert "Type: TensorBoard of 2, 1, 2.1" in shown
        assert "(`riseml tensorboard 3` opens it)" in shown
        look = "find /outputs -name riseml-configuration.yml | sort; touch /outputs/*/*/1/riseml*; ls /output /data"
        _, said, err = hands.call("exec", job, "--", "sh", "-c", look)
        assert [line.split("/")[3:] for line in said.decode().split()] == [
            ["toaster", "1", "riseml-configuration.yml"],
            ["toaster", "2", "1", "riseml-configuration.yml"],
            ["toaster", "2", "2", "riseml-configuration.yml"],
        ]
        assert err.count("Read-only file system") == 1
        assert err.count("No such file or directory") == 2
        with open_forward(hands, "3") as (second, again, _):
            assert again == job
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE) == 130
            assert rig.wait_closed("3")["state"] == "KILLED"
            _, said_ = second.communicate(timeout=DEADLINE)
            assert (second.returncode, b"3 has ended (KILLED)" in said_) == (4, True)


def _listens(hands: Hands) -> bool:
    """Return whether TensorBoard listens; it needs some seconds."""
    return any("Press CTRL+C to quit" in line for line in hands.rig.lines("1.tensorboard", follow=False))
