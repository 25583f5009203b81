"""The root of outputs on a host: who may replace folders there, and whether its file system keeps modes."""

from __future__ import annotations

import pytest

from riseml.executors.docker.output_parts import keeps_modes, lets_others_replace, to_unix_mode
from riseml.model import Mount
from riseml.spec.pool.types import Volume

GO_STICKY, GO_FOLDER = 1 << 20, 1 << 31


@pytest.mark.parametrize(
    ("mode", "is_open"), [(0o755, False), (0o775, False), (0o777, True), (0o777 | GO_STICKY, False), (0o703, True)]
)
def test_a_root_where_every_user_may_replace_folders_is_found(mode: int, *, is_open: bool) -> None:
    volume = Volume("outputs", "local", ())
    found = to_unix_mode(mode | GO_FOLDER)
    assert lets_others_replace(Mount("/mnt/output", "/output"), found) == is_open
    assert not lets_others_replace(Mount("outputs", "/output", volume=volume), found)


def test_a_file_system_that_keeps_no_modes_is_found() -> None:
    assert keeps_modes(0o600)
    assert not keeps_modes(0o755), "vfat"
