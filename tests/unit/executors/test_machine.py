"""The resources of this machine, as the executor measures them."""

from __future__ import annotations

import ipaddress
import socket

from riseml.executors.machine import list_routed_subnets


def test_subnets_are_those_that_the_kernel_routes() -> None:
    found = [ipaddress.ip_network(text) for text in list_routed_subnets()]
    for network in found:
        assert 0 < network.prefixlen <= 32
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for network in found:
            if network.prefixlen < 31:
                try:
                    probe.connect((str(network[1]), 9))  # sends nothing; fails when there is no route
                except OSError:
                    assert str(network) not in list_routed_subnets(), "the route was removed meanwhile"
