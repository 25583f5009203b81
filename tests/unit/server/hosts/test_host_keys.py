"""The keys and addresses of hosts that ssh reaches. Real keys: tests/real/transports."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.names import HostName
from riseml.server.hosts.host_keys import find_address, find_pins, scan_new_host
from riseml.spec.pool.types import HostSpec


@pytest.mark.parametrize("url", ["unix:///var/run/docker.sock", "tcp://gpu1:2376"])
def test_a_host_that_ssh_does_not_reach_has_no_keys(tmp_path: Path, url: str) -> None:
    host = HostSpec(HostName("gpu1"), url)
    assert scan_new_host(host, tmp_path) is None
    assert find_address(host, tmp_path) == ""
    assert find_pins(host, tmp_path) == ""


def test_the_file_of_the_pinned_keys_is_named_once_it_has_the_host(tmp_path: Path) -> None:
    known = tmp_path / "known"
    host = HostSpec(HostName("gpu1"), "ssh://me@192.0.2.11", known_hosts=str(known))
    assert find_pins(host, tmp_path) == ""
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
    known.write_text(f"192.0.2.11 ssh-ed25519 {key}\n")
    assert find_pins(host, tmp_path) == str(known)
    assert find_address(host, tmp_path) == "", "the URL names the host itself"
