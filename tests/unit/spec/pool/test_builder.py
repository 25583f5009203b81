"""What a valid pool.yml means."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.spec.pool import types
from riseml.spec.pool.loader import check_pool, load_pool
from tests.unit.spec.examples import FULL_POOL


def test_every_key_is_read(pool_path: Path) -> None:
    folder = pool_path.parent
    assert load_pool(FULL_POOL, pool_path) == types.PoolSpec(
        hosts=(
            types.HostSpec(
                name=HostName("gpu1"),
                url="ssh://me@gpu1:2222/run/other.sock",
                address="gpu1",
                gpus=("0", "GPU-8f2c"),
                labels=(("gpu", "a100"), ("fast", "true"), ("driver", "1.10")),
                cpus=30.5,
                mem=120 * 1024,
                identity=str(folder / "keys" / "id"),
                known_hosts=str(folder.parent / "known"),
            ),
            types.HostSpec(
                name=HostName("gpu2"),
                url="tcp://gpu2.example.org:2376",
                address="gpu2.example.org",
                mem=16384,
                tls=types.Tls(str(folder / "ca.pem"), str(folder / "ca.pem"), str(folder / "keys" / "id")),
            ),
            types.HostSpec(HostName("lab"), "tcp://[2001:db8::1]:2375", "lab.example.org", insecure=True),
        ),
        output="/mnt/out",
        data=types.Volume("data", "nfs", (("o", "addr=192.0.2.10,ro"), ("hard", "yes"))),
        disk=types.DiskSpec(92),
        network=Network.HOST,
        encrypted=False,
        registry="registry.example.org:5000/riseml",
    )


@pytest.mark.parametrize(("value", "mark"), [("false", None), ("10", 10), ("99", 99)])
def test_the_server_makes_room_on_disks_as_the_file_says(value: str, mark: int | None) -> None:
    hosts = "hosts: [{name: here, url: unix:///var/run/docker.sock}]\n"
    assert load_pool(f"{hosts}disk: {{clean_above: {value}}}\n", "pool.yml").disk == types.DiskSpec(mark)
    assert load_pool(hosts, "pool.yml").disk is None, "RISEML_CLEAN_ABOVE says it"
    for wrong in ("true", "100", "9", "85.5", "85%"):
        assert check_pool(f"{hosts}disk: {{clean_above: {wrong}}}\n", "pool.yml").spec is None


def test_one_local_host_needs_no_address() -> None:
    spec = load_pool("hosts: [{name: here, url: unix:///var/run/docker.sock}]\n", "pool.yml")
    assert spec == types.PoolSpec((types.HostSpec(HostName("here"), "unix:///var/run/docker.sock"),))
