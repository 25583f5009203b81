"""Commands about files, against a server that may say anything."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import UsageError
from riseml.cli.files.addresses import parse_storage_address
from riseml.job_programs.folder_paths import show_name
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def entry(path: str, kind: str = "file", **more: Any) -> dict[str, Any]:
    shape = {"path": path, "kind": kind, "size": 0, "mtime": 10**18, "executable": False, "target": None, "etag": "e"}
    return {**shape, **more}


def answer_listing(fake_server: FakeServer, *entries: dict[str, Any]) -> None:
    listing = {"at": entry("", "folder"), "entries": list(entries), "next": None}
    fake_server.answers["GET /files"] = (200, listing)


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


def test_names_are_shown_escaped(riseml: Riseml, fake_server: FakeServer) -> None:
    answer_listing(fake_server, entry("a\nb\x1b[2J"), entry("%FF", "folder"), entry("\u202etxt"), entry(".hidden"))
    assert riseml("ls", "data://").out.splitlines() == ["a\\nb\\x1b[2J", "\\xff/", "\\u202etxt"]
    rows = [json.loads(line)["path"] for line in riseml("ls", "-a", "data://", "--json").out.splitlines()]
    assert rows == ["data://a\nb\x1b[2J", "data://\udcff", "data://\u202etxt", "data://.hidden"]
    assert show_name("a b%25") == "a b%"


def test_rm_asks_and_needs_a_yes_elsewhere(riseml: Riseml, fake_server: FakeServer) -> None:
    answer_listing(fake_server, entry("x", size=3))
    fake_server.answers["POST /files/remove"] = (
        200,
        {"path": "x", "files": 1, "folders": 1, "size": 3, "done": True},
    )
    done = riseml("rm", "-r", "data://x")
    assert (done.code, "--yes removes without a question" in done.err) == (4, True)
    assert riseml("rm", "-n", "-r", "data://x").err == "Would remove 1 file.\n"
    assert not any("remove" in one for one in fake_server.asked)
    done = riseml("rm", "-r", "data://x", "--yes")
    assert (done.code, done.err) == (0, "Removed 1 file.\n")
    assert any("remove" in one for one in fake_server.asked)


def test_a_copy_never_overwrites_its_own_copies(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "model.pt").write_text(name)
    answer_listing(fake_server)
    done = riseml("cp", "a/model.pt", "b/model.pt", "data://models/")
    assert (done.code, "a/model.pt and b/model.pt" in done.err, "into two folders" in done.err) == (2, True, True)
    assert not any("PUT" in one or "POST" in one for one in fake_server.asked)


def test_local_files_are_printed_and_counted(riseml: Riseml, folder: Path) -> None:
    (folder / "odd").write_bytes(b"\x1b[2Jx\xff\n" + b"y" * 3)
    printed = riseml("cat", "odd", "train.py")
    assert (printed.code, printed.out) == (0, "x\\xff\nyyy\nprint('toast')\n")
    assert riseml("ls", "t*.py").out == "train.py\n"
    assert json.loads(riseml("du", "odd", "--json").out) == {"path": "odd", "files": 1, "size": 10}
    assert riseml("cat", "none").code == 3


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


def test_several_paths_are_shown_with_their_addresses(riseml: Riseml, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "model.pt").write_text(name)
    assert riseml("ls", "*/model.pt").out == "a/model.pt\nb/model.pt\n"
    assert riseml("ls", "a", "train.py", "b/").out == "train.py\na:\nmodel.pt\nb:\nmodel.pt\n"
    assert riseml("ls", "a").out == "model.pt\n"


def test_a_copy_has_the_name_that_the_user_typed(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    (folder / "model-7%").write_text("x")
    (folder / "latest.pt").symlink_to("model-7%")
    answer_listing(fake_server)
    done = riseml("cp", "-n", "latest.pt", "model-7%", "data://models/")
    targets = [line.rpartition("data://")[2] for line in (done.out + done.err).splitlines() if "->" in line]
    assert (done.code, targets) == (0, ["models/latest.pt  1 B", "models/model-7%  1 B"])


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


@pytest.mark.parametrize(
    ("text", "of", "path"),
    [
        ("data://", "", ""),
        ("data://mnist/a b/", "", "mnist/a b"),
        ("output://4", "4", ""),
        ("output://4.2/x%", "4.2", "x%25"),
        ("output://paul/toaster/4/model", "4", "model"),
    ],
)
def test_an_address_names_a_storage_and_a_path(text: str, of: str, path: str) -> None:
    found = parse_storage_address(text)
    assert found is not None
    assert (found.place.of, found.path) == (of, path)


@pytest.mark.parametrize("text", ["s3://bucket", "output://", "output://paul", "output://x/y/z", "data://a/../b"])
def test_invalid_storage_addresses_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_storage_address(text)
    assert parse_storage_address("4.master:/x") is parse_storage_address("./data") is None
