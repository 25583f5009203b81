"""The port of this machine that a job gets."""

from __future__ import annotations

import socket

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


@pytest.mark.parametrize("verb", ["tensorboard 4", "notebook"])
def test_a_port_in_use_is_said_before_anything_starts(riseml: Riseml, fake_server: FakeServer, verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = riseml(*verb.split(), "--port", str(port))
    assert (result.code, f"port {port} of this machine is in use" in result.err) == (4, True)
    assert not fake_server.asked
