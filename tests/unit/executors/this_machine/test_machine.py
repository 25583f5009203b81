"""The resources of this machine, as the executor measures them."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from riseml.executors.this_machine import machine
from riseml.executors.this_machine.machine import list_routed_subnets


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


def test_the_ports_in_use_are_read_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([frozenset({1}), frozenset({2})])
    monkeypatch.setattr(machine, "find_busy_ports", lambda server: next(readings))
    now = iter([10.0, 10.9, 11.1])
    reader = machine.PortReader("server", lambda: next(now))
    assert [reader.read_busy_ports() for _ in range(3)] == [{1}, {1}, {2}]
