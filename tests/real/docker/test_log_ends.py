"""A reader continues the log of a container that has ended, wherever an earlier one stopped."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import docker
import pytest

from riseml.executors.docker.log_stream import read_log_frames
from riseml.model import Frame, LogCursor
from tests.support.cursors import cursor_after
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE

pytestmark = pytest.mark.every_engine

_PRINTER = """
import sys
for number in range(60):
    print(number, file=sys.stderr if number % 7 == 3 else sys.stdout, flush=True)
print("x" * 100_000, flush=True)
print("last")
"""


@pytest.fixture
def engine(engine_url: str) -> Iterator[docker.APIClient]:
    with docker.APIClient(base_url=engine_url, version="auto", timeout=DEADLINE) as api:
        yield api


@pytest.fixture
def ended(engine: docker.APIClient) -> Iterator[str]:
    """The name of a container that has printed to both streams and ended."""
    name = f"riseml-test-{uuid.uuid4().hex}"
    engine.create_container(BASE, ["python3", "-c", _PRINTER], name=name)
    try:
        engine.start(name)
        engine.wait(name)
        yield name
    finally:
        engine.remove_container(name, force=True)


def test_every_frame_that_the_store_lacks_comes_once(engine: docker.APIClient, ended: str) -> None:
    def read(cursor: LogCursor) -> list[Frame]:
        return [frame for frames in read_log_frames(engine, ended, cursor, follow=False) for frame in frames]

    log = read(LogCursor())
    assert [frame.data for frame in log if frame.stream == 2] == [b"%d\n" % number for number in range(3, 60, 7)]
    assert [frame.data for frame in log if frame.stream == 1][-1] == b"last\n"
    for held in range(len(log) + 1):
        assert read(cursor_after(log[:held])) == log[held:], f"the store holds {held} of {len(log)} frames"
