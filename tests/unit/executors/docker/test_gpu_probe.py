"""The GPUs of a host elsewhere: how its engine passes them on, and in which image they are read."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from docker.errors import APIError

from riseml.base.errors import EngineError
from riseml.executors.docker.gpu_probe import IMAGE, offers_gpus, probe_gpus
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from tests.unit.executors.docker.held_containers import SERVER, FakeEngine, ProgramEngine


@pytest.mark.parametrize(
    ("info", "offers"),
    [
        ({}, False),
        ({"Runtimes": {"runc": {}}}, False),
        ({"Runtimes": {"runc": {}, "nvidia": {}}}, True),
        ({"Runtimes": None, "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}, True),
        ({"DiscoveredDevices": [{"Source": "cdi", "ID": "amd.com/gpu=0"}]}, False),
    ],
)
def test_an_engine_offers_gpus_by_a_runtime_or_by_cdi(info: dict[str, object], *, offers: bool) -> None:
    assert offers_gpus(info) is offers


INFO: dict[str, Any] = {"Runtimes": {"nvidia": {}}}
TABLE = b"""index, uuid, name, driver_version, pci.bus_id, memory.total [MiB], memory.used [MiB], utilization.gpu [%], \
temperature.gpu, power.draw [W], power.limit [W]
0, GPU-a, Tesla T4, 550.54.14, 00000000:00:04.0, 15360 MiB, 1024 MiB, 50 %, 40, 30.00 W, 70.00 W
"""


class NvidiaEngine(ProgramEngine):
    """An engine with these images, one of which has what nvidia-smi needs."""

    def __init__(self, *names: str, works: str = "") -> None:
        super().__init__()
        self.names = names
        self.works = works
        self.pulled: list[str] = []

    def images(self, *_: Any, **_options: Any) -> Any:
        return [{"RepoTags": [name], "Created": -age} for age, name in enumerate(self.names)]

    def pull(self, repository: Any, *_: Any, **_options: Any) -> Any:
        self.pulled.append(repository)
        self.works = repository

    def start(self, *_: Any, **_options: Any) -> None:
        if self.requests[-1]["Image"] != self.works:
            answer = requests.Response()
            answer.status_code = 400
            raise APIError("refused", answer, "nvidia-smi: not found")

    def logs(self, *_: Any, **_options: Any) -> Any:
        return TABLE


def probe(api: NvidiaEngine, *, pulls: bool = False) -> list[str]:
    """Return the images that were tried; the last one gave the GPU."""
    helpers = Helpers(FakeEngine(api), SERVER, HelperRegistry())
    (reading,) = probe_gpus(api, helpers, INFO, pulls=pulls)
    assert (reading.gpu.uuid, reading.percent) == ("GPU-a", 50.0)
    assert api.rows == {}, "no container is left"
    return [request["Image"] for request in api.requests]


def test_images_of_the_host_are_tried_before_one_is_pulled() -> None:
    assert probe(NvidiaEngine("alpine", "python:3.11", works="python:3.11")) == ["alpine", "python:3.11"]
    assert probe(NvidiaEngine("alpine", IMAGE, works=IMAGE)) == [IMAGE]
    api = NvidiaEngine("alpine")
    assert probe(api, pulls=True) == ["alpine", IMAGE]
    assert api.pulled == [IMAGE]


def test_images_without_programs_are_not_tried() -> None:
    assert probe(NvidiaEngine("riseml/disk:1", "riseml/code:ab", "python", works="python")) == ["python"]


def test_a_container_that_reads_gpus_can_do_nothing_else() -> None:
    api = NvidiaEngine("python", works="python")
    probe(api)
    host = api.requests[0]["HostConfig"]
    assert (api.requests[0]["User"], host["NetworkMode"], host["CapDrop"]) == ("65534:65534", "none", ["ALL"])
    assert host["Runtime"] == "nvidia"
    assert "Mounts" not in host


def test_a_host_on_which_nothing_runs_says_why_and_what_helps() -> None:
    api = NvidiaEngine("alpine")
    helpers = Helpers(FakeEngine(api), SERVER, HelperRegistry())
    with pytest.raises(EngineError, match="nvidia-smi: not found") as raised:
        probe_gpus(api, helpers, INFO, pulls=False)
    assert f"pull {IMAGE} there" in str(raised.value.hint)
    assert probe_gpus(api, helpers, {}, pulls=False) == (), "its engine passes on none"
