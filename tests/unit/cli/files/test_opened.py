"""Addresses that are opened together, and how each is shown."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.listings import answer_listing


def test_paths_of_this_machine_are_shown_as_they_are_typed(riseml: Riseml, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/100%").write_text("abc")
    (folder / ".hid").write_text("h")
    (folder / "last").symlink_to("sub/100%")
    (folder / "in").symlink_to("sub")

    def list_addresses(*words: str) -> list[str]:
        return [json.loads(line)["path"] for line in riseml(*words, "--json").out.splitlines()]

    assert list_addresses("ls", ".") == ["./in", "./last", "./riseml.yml", "./sub", "./train.py"]
    assert list_addresses("ls", "in", "sub/.", ".hid") == ["in/100%", "sub/./100%", ".hid"]
    assert list_addresses("du", ".")[-1] == "."
    assert list_addresses("du", "sub") == ["sub"]
    assert riseml("ls", "last").out == "last\n"
    assert riseml("ls", ".hid").out == ".hid\n"


@pytest.mark.parametrize("pattern", ["f*", "data://f"])
def test_thousands_of_paths_share_their_descriptors(
    riseml: Riseml, fake_server: FakeServer, folder: Path, pattern: str
) -> None:
    for number in range(200):
        (folder / f"f{number}").write_text("")
    answer_listing(fake_server)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = set(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, ([fd for fd in range(4000) if fd not in taken][50], limits[1]))
    try:
        done = riseml("ls", *([pattern] * (1 if "*" in pattern else 200)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (done.code, len(done.out.splitlines())) == (0, 200), done.err
