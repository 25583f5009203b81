"""Jobs that use all processes, memory and log space that they can get. Limits hold them; the server and the other jobs
go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from riseml.executors.docker.containers import PIDS
from tests.support.hosts import Engine
from tests.support.rig import HOG, Rig, gang, single

_MIB = 2**20
_MOST_SERVER = 250 * _MIB  # bytes; an idle server stays under 150 MB
_COUNT = 60

BOMB = """
import os, signal
children = 0
while True:
    try:
        child = os.fork()
    except BlockingIOError:
        break
    if child == 0:
        while True:
            signal.pause()
    children += 1
print("refused after", children, flush=True)
open(os.environ["OUTPUT_DIR"] + "/refused", "w").close()
signal.pause()
"""
AFTER = "until [ -e $OUTPUT_DIR/refused ]; do sleep 0.1; done"
FLOOD = "exec yes this job prints without end"
COUNTER = f"i=0; while [ $i -lt {_COUNT} ]; do echo $i; i=$((i+1)); sleep 0.1; done"


@pytest.fixture
def greedy_rig(tmp_path: Path, engine_url: str) -> Iterator[Rig]:
    """A server that keeps little of a log, with one small host."""
    rig = Rig(tmp_path / "home", engine_url, RISEML_LOG_LIMIT="1MB")
    hosts = [{"name": "small", "url": engine_url, "mem": "256MiB"}]
    (rig.home / "pool.yml").write_text(json.dumps({"hosts": hosts}))
    with rig:
        yield rig
        rig.clean_up()


def test_a_fork_bomb_and_endless_output_hurt_no_other_job(greedy_rig: Rig) -> None:
    rig = greedy_rig
    assert rig.process is not None
    server = psutil.Process(rig.process.pid)
    config = gang(
        {"master": f"{COUNTER}; {AFTER}", "worker.1": "exec python3 bomb.py", "worker.2": FLOOD},
        resources={"cpus": 0.1, "mem": "32MiB"},
        limits={"mem": "3GiB", "cpus": 1},
        stop_grace=1,
        finish_grace=0,
    )
    rig.submit(config, {"bomb.py": BOMB})
    rig.submit(single(COUNTER))
    assert isinstance(rig.host, Engine)
    rig.wait_state("1", "RUNNING")  # the gang may have ended when a busy server has read the flood
    flood = rig.host.api.inspect_container(rig.host.find(rig.server_id(), "worker.2"))
    refused = rig.wait("the bomb is refused", lambda: rig.lines("1.worker.1", follow=False))
    assert PIDS - 10 <= int(refused[0].rpartition(" ")[2]) < PIDS
    mark = "1.worker.2 [riseml: the log of worker.2 has reached its limit of 1,048,576 bytes; the rest is not kept]"
    rig.wait("the flood is cut", lambda: mark in rig.lines("1.worker.2", follow=False)[-1:])
    assert rig.get("/v1/system")["hosts"], "it answers, and so does the engine"
    assert flood["HostConfig"]["LogConfig"]["Config"] == {"max-file": "2", "max-size": str(64 * 2**20)}
    assert rig.wait_closed("2")["state"] == "FINISHED"
    assert rig.wait_closed("1")["state"] == "FINISHED"
    numbers = [str(number) for number in range(_COUNT)]
    assert rig.lines("2.train") == [f"2.train {number}" for number in numbers]
    assert rig.lines("1.master") == [f"1.master {number}" for number in numbers]
    assert rig.lines("1.worker.2").count(mark) == 1
    assert (rig.home / "logs" / "1.log").stat().st_size < 4_000_000
    assert server.memory_info().rss < _MOST_SERVER
    assert (rig.containers(), rig.networks()) == ([], [])


def test_a_job_without_a_limit_ends_before_its_host_does(greedy_rig: Rig) -> None:
    """What the pool gives to jobs is the most that one of them may use."""
    rig = greedy_rig
    rig.submit(single(HOG))
    found = rig.wait_closed("1")
    assert (found["state"], found["reason"]) == ("FAILED", "OUT_OF_MEMORY")
    assert "out of memory" in found["message"]
