"""The request that creates the container of a job: what a job may do, and what it may never do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import docker
import pytest
import requests
from docker.errors import ImageNotFound

from riseml.base.names import JobName
from riseml.base.states import Network
from riseml.executors.docker.containers import (
    container_name,
    container_request,
    create_container,
    describe_binds,
    describe_mounts,
    find_log_size,
    network_name,
)
from riseml.model import JobKey, Launch, Mount
from riseml.spec.config.types import Limits, Resources
from riseml.spec.pool.types import Volume
from tests.support.launches import make_sleeping_launch

MIB = 2**20
SERVER = "5e17e4a0" * 4
LAUNCH = make_sleeping_launch(SERVER, 1, "10.213.0.0/26", 2)


def make_host_config(launch: Launch, most_mem: int = 1000) -> dict[str, Any]:
    config: dict[str, Any] = container_request(launch, most_mem)["HostConfig"]
    return config


@pytest.mark.parametrize("network", list(Network))
def test_no_job_has_more_rights_than_its_user(network: Network) -> None:
    request = container_request(replace(LAUNCH, network=network), 1000)
    host = request["HostConfig"]
    assert (host["Privileged"], host["CapDrop"], host["SecurityOpt"]) == (False, ["ALL"], ["no-new-privileges"])
    assert (request["User"], request["Entrypoint"]) == ("1000:1000", [])
    assert host["RestartPolicy"] == {"Name": "no"}
    assert not {"Devices", "PidMode", "IpcMode", "CapAdd", "Binds"} & set(host)


@pytest.mark.parametrize(
    ("promised", "own_limit", "limit"),
    [(512, None, 1000), (2000, None, 2000), (512, 256, 256), (512, 4000, 4000)],
    ids=["what one job may use", "what it was promised", "its own limit", "a larger one of its own"],
)
def test_a_job_has_a_limit_of_memory_and_no_swap(promised: int, own_limit: int | None, limit: int) -> None:
    launch = replace(LAUNCH, resources=Resources(0.1, promised, 0), limits=Limits(mem=own_limit))
    host = make_host_config(launch)
    assert (host["Memory"], host["MemorySwap"]) == (limit * MIB, limit * MIB)
    assert host["MemoryReservation"] == min(promised, limit) * MIB


def test_cores_are_a_share_unless_the_job_has_a_limit() -> None:
    assert make_host_config(LAUNCH)["CpuShares"] == 103
    assert "NanoCpus" not in make_host_config(LAUNCH)
    assert make_host_config(replace(LAUNCH, limits=Limits(cpus=1.5)))["NanoCpus"] == 1_500_000_000


def test_only_a_job_with_gpus_asks_for_them() -> None:
    assert "DeviceRequests" not in make_host_config(LAUNCH)
    (asked,) = make_host_config(replace(LAUNCH, gpus=("0", "GPU-b")))["DeviceRequests"]
    assert asked == {"DeviceIDs": ["0", "GPU-b"], "Capabilities": [["gpu"]]}


def test_a_job_has_its_address_in_the_network_of_its_experiment_or_none_on_that_of_the_host() -> None:
    own = container_request(LAUNCH, 1000)["NetworkingConfig"]["EndpointsConfig"]
    assert own == {"riseml-5e17e4a0-1": {"Aliases": ["worker-1"], "IPAMConfig": {"IPv4Address": "10.213.0.2"}}}
    host = container_request(replace(LAUNCH, network=Network.HOST, hosts=(("ps-1", "10.0.0.1"),)), 1000)
    assert (host["NetworkingConfig"]["EndpointsConfig"], host["HostConfig"]["NetworkMode"]) == ({}, "host")
    assert host["HostConfig"]["ExtraHosts"] == []
    across = container_request(replace(LAUNCH, network=Network.OVERLAY), 1000)["HostConfig"]["NetworkMode"]
    assert across == "riseml-5e17e4a0-1-10-213-0-0"


def test_names_are_found_again_by_a_repeated_start() -> None:
    assert container_name(SERVER, JobKey(4, JobName("worker.1"), 2)) == "riseml-5e17e4a0-4-worker-1-a2"
    assert network_name(SERVER, 4) == "riseml-5e17e4a0-4"


@pytest.mark.parametrize(
    ("limit", "size"), [(0, 64 * MIB), (10 * MIB, 80 * MIB), (1 << 40, 4096 * MIB)], ids=["least", "usual", "most"]
)
def test_the_engine_keeps_more_of_a_log_than_the_server(limit: int, size: int) -> None:
    assert find_log_size(limit) == size


def test_a_missing_folder_is_made_only_by_the_mount_that_asks_for_it() -> None:
    mounts = (
        Mount("/srv/data", "/data", read_only=True),
        Mount("/srv/output/4", "/output", makes=True),
        Mount("outputs", "/more", volume=Volume("outputs", "nfs", (("o", "addr=n"),))),
    )
    assert describe_binds(mounts) == ["/srv/output/4:/output:rw"]
    folder, volume = describe_mounts(mounts)
    assert folder == {"Type": "bind", "Source": "/srv/data", "Target": "/data", "ReadOnly": True}
    assert (volume["Type"], volume["VolumeOptions"]["NoCopy"]) == ("volume", True)
    assert volume["VolumeOptions"]["DriverConfig"] == {"Name": "nfs", "Options": {"o": "addr=n"}}


class ImageEngine(docker.APIClient):
    """An engine with these images, which creates containers of them alone."""

    def __init__(self, *images: str) -> None:
        self.images_there = images
        self.created: list[str] = []

    def create_container_from_config(self, config: Any, name: str | None = None, platform: str | None = None) -> Any:
        self.inspect_image(config["Image"])
        self.created.append(config["Image"])

    def inspect_image(self, image: Any) -> Any:
        if image not in self.images_there:
            raise ImageNotFound("no such image", requests.Response())
        return {"Id": image}


DIGEST = f"python@sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("images", "layer", "created", "has_code"),
    [
        ((DIGEST, "code"), "code", "code", True),
        ((DIGEST,), "code", DIGEST, False),
        ((DIGEST,), None, DIGEST, False),
        ((DIGEST.partition("@")[2],), None, DIGEST.partition("@")[2], False),
    ],
    ids=["a layer with the code", "the layer is gone", "no layer", "an image from another engine"],
)
def test_a_container_is_made_from_what_the_engine_has(
    images: tuple[str, ...], layer: str | None, created: str, *, has_code: bool
) -> None:
    api = ImageEngine(*images)
    assert create_container(api, {"Image": DIGEST}, "c1", layer) is has_code
    assert api.created == [created]


def test_an_image_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(ImageNotFound):
        create_container(ImageEngine(), {"Image": DIGEST}, "c1", None)
