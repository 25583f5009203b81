"""The server's socket: when the path of the home is too long it is below /tmp, where another user may have made it
first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import Refused
from riseml.base.settings import Settings, read_settings
from riseml.client.exchange import read_address
from riseml.server.process import _bind_socket


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Settings]:
    """The settings of a home with a long path; what it has below /tmp is removed."""
    home = tmp_path / ("h" * 100)
    home.mkdir()
    settings = read_settings({"RISEML_HOME": str(home)})
    yield settings
    settings.socket.unlink(missing_ok=True)
    settings.socket.parent.rmdir()


def test_a_long_home_has_its_socket_in_a_folder_of_its_user_alone(far: Settings) -> None:
    assert read_address(far, {}).socket == far.socket
    with _bind_socket(far):
        assert far.socket.parent.stat().st_mode & 0o077 == 0
        assert far.socket.stat().st_mode & 0o077 == 0
        assert read_address(far, {}).socket == far.socket


def test_no_process_serves_or_connects_in_a_folder_that_others_may_enter(far: Settings) -> None:
    far.socket.parent.mkdir()
    far.socket.parent.chmod(0o777)
    with pytest.raises(PermissionError, match="is not a folder of yours alone"):
        _bind_socket(far)
    with pytest.raises(Refused, match="does not belong to you alone"):
        read_address(far, {})
