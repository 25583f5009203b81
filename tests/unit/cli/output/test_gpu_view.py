"""The GPUs of the hosts: what each does, and why none is known."""

from __future__ import annotations

import json
import re

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

GPU = {
    "host": "gpu1",
    "id": "0",
    "uuid": "GPU-838f60d9",
    "name": "NVIDIA A100-SXM4-40GB",
    "driver": "535.129.03",
    "bus": "00000000:07:00.0",
    "serial": "1322520012345",
    "mem_total": 40 * 2**30,
    "mem_used": 38 * 2**30,
    "percent": 97.0,
    "temperature": 68.0,
    "power": 391.2,
    "power_limit": 400.0,
    "jobs": ["4.worker.1"],
}
UNKNOWN_GPU = (
    GPU | {"serial": ""} | dict.fromkeys(["mem_total", "mem_used", "percent", "temperature", "power", "power_limit"])
)


def test_monitor_shows_what_each_gpu_does(riseml: Riseml, fake_server: FakeServer) -> None:
    found = {"gpus": [GPU, UNKNOWN_GPU | {"id": "1", "jobs": []}], "troubles": []}
    fake_server.answers["GET /gpus"] = (200, found)
    head, first, second = riseml("monitor", "--once", "--gpu").out.splitlines()
    cells = ["HOST", "GPU", "NAME", "BUSY", "MEM Used/Total", "POWER", "TEMP", "BUS", "JOBS"]
    assert re.split(" {2,}", head) == cells
    row = ["gpu1", "0", GPU["name"], "97 %", "38.0/40.0 GiB", "391/400 W", "68 °C", GPU["bus"], "4.worker.1"]
    assert re.split(" {2,}", first) == row
    assert re.split(" {2,}", second)[3:] == ["-", "-/-", "-", "-", GPU["bus"], "-"]
    assert json.loads(riseml("monitor", "--once", "--gpu", "--json").out) == found
    models = riseml("system", "info", "-g").out
    assert "40.0 GiB" in models
    assert "535.129.03" in models
    assert [re.split(" {2,}", row)[5] for row in models.splitlines()] == ["SERIAL", "1322520012345", "-"]


def test_a_host_whose_gpus_cannot_be_read_is_named(riseml: Riseml, fake_server: FakeServer) -> None:
    trouble = {"host": "gpu1", "message": "nvidia-smi: Failed to initialize NVML\x1b[2J"}
    fake_server.answers["GET /gpus"] = (200, {"gpus": [], "troubles": [trouble]})
    for words in (["monitor", "--once", "--gpu"], ["system", "info", "-g"]):
        shown = riseml(*words)
        assert "No GPU is known on any host" in shown.out
        assert "gpu1: nvidia-smi: Failed to initialize NVML" in shown.out + shown.err
        assert "\x1b" not in shown.out + shown.err
