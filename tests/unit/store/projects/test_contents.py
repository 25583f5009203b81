"""Contents: there whole or not at all, whatever happens to the server and to its disk."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.files.archives.pieces import RECORD, write_pieces
from riseml.store.projects.contents import ContentStore, DamagedContent
from riseml.store.projects.uploads import ContentReceiver, StreamReceiver

TEXTS = [b"", b"a", b"bc", b"x" * 300_000, os.urandom(2_000)]


def name(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def put(store: ContentStore, contents: Iterable[bytes], wanted: set[bytes] | None = None) -> None:
    records = b"".join(RECORD.pack(len(content)) + content for content in contents)
    with closing(ContentReceiver(store, wanted)) as receiver:
        stream = StreamReceiver(receiver, 1 << 23)
        for piece in write_pieces([records], compress=False):
            stream.feed(piece)


def read(store: ContentStore, contents: list[bytes]) -> list[bytes]:
    return [b"".join(pieces) for pieces in store.read_contents([name(content) for content in contents])]


def test_each_content_is_kept_once(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    put(store, TEXTS)
    put(store, TEXTS)
    assert len(list(tmp_path.glob("*.pack"))) == 1, "a pack whose contents are all there is not kept"
    put(store, [*TEXTS, b"new"])
    assert read(store, TEXTS[::-1]) == TEXTS[::-1]
    assert read(ContentStore(tmp_path), TEXTS) == TEXTS
    assert store.remove_all_but({name(content) for content in TEXTS}) > 300_000, "what came twice is removed"
    assert read(store, TEXTS) == TEXTS


def test_contents_that_are_not_wanted_are_not_kept(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    put(store, TEXTS, {name(b"a")})
    assert set(store.find_places([name(content) for content in TEXTS])) == {name(b"a")}
    assert read(store, [b"a"]) == [b"a"]


def test_many_packs_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.store.projects.uploads._FULL_PACK", 100)
    store = ContentStore(tmp_path)
    contents = [b"%d" % number * 20 for number in range(40)]
    put(store, contents)
    live = contents[::3]
    store.remove_all_but({name(content) for content in live})
    assert read(store, live) == live
    assert read(ContentStore(tmp_path), live) == live
    with pytest.raises(DamagedContent):
        read(store, contents)
    assert store.remove_all_but(set()) > 0
    assert list(tmp_path.glob("*.pack")) == []


@pytest.mark.parametrize("harm", ["a bit", "cut off", "gone", "gone, seen at the start"])
def test_damage_is_noticed_and_repaired_by_sending_again(tmp_path: Path, harm: str) -> None:
    store = ContentStore(tmp_path)
    put(store, TEXTS)
    (pack,) = tmp_path.glob("*.pack")
    data = bytearray(pack.read_bytes())
    if harm == "a bit":
        data[-1] ^= 1
        pack.write_bytes(data)
    elif harm == "cut off":
        os.truncate(pack, len(data) - 1)
    else:
        pack.unlink()
    if harm.endswith("start"):
        store = ContentStore(tmp_path)
        assert store.find_lost() == {name(content) for content in TEXTS}
    damaged = TEXTS[-1]
    with pytest.raises(DamagedContent):
        read(store, [damaged])
    assert name(damaged) in store.find_lost()
    assert name(damaged) not in store.find_places([name(damaged)])
    put(store, TEXTS)
    assert not store.find_lost() & {name(damaged)}
    assert read(store, [damaged]) == [damaged]


@pytest.mark.parametrize(("call", "number"), [("pread", errno.EIO), ("open", errno.EMFILE)])
def test_a_read_that_fails_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    store = ContentStore(tmp_path)
    put(store, TEXTS)

    real = getattr(os, call)

    def fail(file: object, *more: object) -> int:
        if isinstance(file, int) or str(file).endswith(".pack"):
            raise OSError(number, os.strerror(number))
        return int(real(file, *more))

    with monkeypatch.context() as failing:
        failing.setattr(f"riseml.store.projects.packs.os.{call}", fail)
        with pytest.raises(EngineError, match=os.strerror(number)) as raised:
            read(store, TEXTS)
        assert not raised.value.permanent
        store.remove_all_but({name(b"a")})
    assert not store.find_lost()
    assert read(store, [b"a"]) == [b"a"], "a sweep that could not read the pack kept it"


@pytest.mark.parametrize("harm", ["bytes of another file", "gone", "cut off"])
def test_a_damaged_table_is_made_again(tmp_path: Path, harm: str) -> None:
    put(ContentStore(tmp_path), TEXTS)
    for path in tmp_path.glob("contents.db?*"):
        path.unlink()
    table = tmp_path / "contents.db"
    match harm:
        case "bytes of another file":
            table.write_bytes(b"no table" * 1000)
        case "gone":
            table.unlink()
        case "cut off":
            os.truncate(table, 5000)
    assert read(ContentStore(tmp_path), TEXTS) == TEXTS


SCRIPT = """
import sys
from pathlib import Path
from riseml.store.projects.contents import ContentStore
from tests.unit.store.projects.test_contents import TEXTS, put
put(ContentStore(Path(sys.argv[1])), [b"late"])
"""


def test_a_server_that_is_killed_leaves_nothing_half(tmp_path: Path) -> None:
    put(ContentStore(tmp_path), [b"early"])
    environ = {**os.environ, "RISEML_FAULT": "P25"}
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], env=environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("*.pack"))) == 2, "the pack is there, and the table does not know it"
    store = ContentStore(tmp_path)
    assert len(list(tmp_path.glob("*.pack"))) == 1
    assert not store.find_places([name(b"late")])
    assert read(store, [b"early"]) == [b"early"]


def test_a_full_disk_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ContentStore(tmp_path)
    put(store, [b"early"])

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        put(store, [b"late"])
    assert [path.suffix for path in tmp_path.iterdir() if "contents" not in path.name] == [".pack"]
    assert read(store, [b"early"]) == [b"early"]


def test_a_disk_that_fills_up_during_an_upload_leaves_no_part(tmp_path: Path) -> None:
    """Each write fails from now on, also those of the end: a limit of the kernel stands for the full disk."""
    store = ContentStore(tmp_path)
    put(store, [b"early"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            put(store, [b"a", os.urandom(4 << 20)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.suffix for path in tmp_path.iterdir() if "contents" not in path.name} == {".pack"}
    kept = [text for text in (b"early", b"a") if store.find_sizes([name(text)])]
    assert b"early" in kept, "whether the one before the disk was full is kept depends on Python's buffers"
    assert read(store, kept) == kept


def test_sizes_are_found_in_a_small_table_and_in_a_large_one(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    texts = [b"%d" % number for number in range(3000)]
    put(store, texts)
    names = {name(text): len(text) for text in texts}
    for wanted in (list(names)[:1], list(names)[:600], list(names)):
        assert store.find_sizes([*wanted, name(b"none")]) == {one: names[one] for one in wanted}
