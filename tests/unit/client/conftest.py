"""The fixtures of the command line that the client's tests need, too: a fake server, and a client that never waits."""

from tests.unit.cli.conftest import client, fake_server, running_fake_server

__all__ = ["client", "fake_server", "running_fake_server"]
