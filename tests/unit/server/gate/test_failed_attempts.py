"""Failures are counted for each address, and forgotten after a minute."""

from __future__ import annotations

import pytest

from riseml.server.gate.failed_attempts import MOST_FAILURES, WINDOW, FailedAttempts, find_network


def test_an_address_waits_after_ten_failures_until_the_first_of_them_is_a_minute_old() -> None:
    moment = [0.0]
    failures = FailedAttempts(lambda: moment[0])
    for at in range(MOST_FAILURES):
        assert failures.find_wait("a") is None
        moment[0] = at
        failures.note_failure("a")
    assert failures.find_wait("a") == WINDOW - (MOST_FAILURES - 1)
    assert failures.find_wait("b") is None
    moment[0] = WINDOW
    assert failures.find_wait("a") is None
    failures.note_failure("a")
    assert failures.find_wait("a") == 1.0, "the second of the ten is the first one now"


def test_the_addresses_that_failed_first_are_forgotten_first() -> None:
    failures = FailedAttempts(lambda: 0.0)
    for address in range(10_001):
        for _ in range(MOST_FAILURES):
            failures.note_failure(str(address))
    assert [failures.find_wait(str(address)) for address in (0, 1, 10_000)] == [None, WINDOW, WINDOW]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("2001:db8:1:2:3::7", "2001:db8:1:2::/64"),
        ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("::1", "loopback"),
        ("no address", "no address"),
    ],
)
def test_what_one_client_controls_is_one_network(address: str, network: str) -> None:
    assert find_network(address) == network
