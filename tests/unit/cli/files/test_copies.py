"""Copies from a server that may say anything: nothing is written outside of the target."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.listings import answer_listing, entry


@pytest.mark.parametrize("path", ["../evil", "/tmp/evil", "a/../../evil", "a//b", "", "%2E%2E/evil", "a\0b"])
def test_a_name_that_leads_out_of_the_target_is_refused(
    riseml: Riseml, fake_server: FakeServer, folder: Path, path: str
) -> None:
    answer_listing(fake_server, entry(path, "folder"))
    (folder / "got").mkdir()
    done = riseml("cp", "output://4", "got")
    assert (done.code, list(folder.parent.rglob("evil"))) == (5 if path else 0, [])


def test_a_copy_follows_no_link_of_the_target(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "got/4").mkdir(parents=True)
    (folder / "got/4/sub").symlink_to(outside)
    answer_listing(fake_server, entry("sub", "folder"), entry("sub/x"))
    done = riseml("cp", "output://4", "got")
    assert (done.code, "behind a link" in done.err) == (4, True)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("target", ["/etc", "..", "../x", "a/../..", "%2Fetc", "", None])
def test_a_link_of_a_server_that_leads_out_is_left_out(
    riseml: Riseml, fake_server: FakeServer, folder: Path, target: str | None
) -> None:
    answer_listing(fake_server, entry("in", "link", target="a b"), entry("out", "link", target=target))
    done = riseml("cp", "output://4", "got")
    assert (done.code, "output://4/out" in done.err) == (0, True)
    assert (os.readlink(folder / "got/in"), os.listdir(folder / "got")) == ("a b", ["in"])


def test_nothing_is_written_through_a_link_that_a_server_sends_first(
    riseml: Riseml, fake_server: FakeServer, folder: Path
) -> None:
    (folder / "got").mkdir()
    answer_listing(
        fake_server, entry("sub", "folder"), entry("up", "link", target="sub"), entry("up/x"), entry("sub/y")
    )
    done = riseml("cp", "output://4", "got")
    assert (done.code, "behind a link" in done.err) == (4, True)
    assert os.listdir(folder / "got/4/sub") == []
