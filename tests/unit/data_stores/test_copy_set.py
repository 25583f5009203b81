"""A set of the cache on its way to a host: in archives, compared when it has arrived."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.copy_set import Batch, check_copy, pack_batch, split_set
from riseml.data_stores.data_cache import FileRow

CONTENTS = {
    "a b/ü": b"one",
    "a b/" + "n" * 255: b"",
    "deep/er/x": b"two" * 1000,
    "line\nbreak": b"three",
}


def make_set(folder: Path, contents: dict[str, bytes] = CONTENTS) -> list[FileRow]:
    """Write a set as the cache has it."""
    rows = []
    for path, content in sorted(contents.items()):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        rows.append(FileRow(path, len(content), 10**18, hashlib.sha256(content).hexdigest()))
    return rows


def unpack(folder: Path, rows: list[FileRow]) -> dict[str, bytes]:
    """Return the files of all archives of a set."""
    found = {}
    for batch in split_set(rows, 0):
        data = b"".join(pack_batch(folder, batch, lambda _: None))
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is not None:
                    found[member.name] = file.read()
    return found


def show(contents: dict[str, bytes]) -> bytes:
    """Return what a host shows of a volume."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        root = tarfile.TarInfo("data")
        root.type = tarfile.DIRTYPE
        tar.addfile(root)
        for path, content in contents.items():
            member = tarfile.TarInfo(f"data/{path}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def test_every_name_arrives(tmp_path: Path) -> None:
    assert unpack(tmp_path, make_set(tmp_path)) == CONTENTS


def test_archives_are_of_a_moderate_size_and_begin_where_the_last_one_ended() -> None:
    rows = [FileRow(str(number), 30 << 20, 0, "") for number in range(5)]
    batches = list(split_set(rows, 0))
    assert [(len(one.rows), one.end) for one in batches] == [(2, 2), (2, 4), (1, 5)]
    assert [one.end for one in split_set(rows, batches[0].end)] == [4, 5]
    assert list(split_set(rows, 5)) == []


def test_a_file_that_was_changed_in_the_cache_is_not_sent(tmp_path: Path) -> None:
    rows = make_set(tmp_path)
    (tmp_path / "deep/er/x").write_bytes(b"tow" * 1000)
    with pytest.raises(EngineError, match="is not what was fetched"):
        list(pack_batch(tmp_path, Batch(rows, len(rows)), lambda _: None))
    (tmp_path / "deep/er/x").unlink()
    with pytest.raises(EngineError, match="cannot be read"):
        list(pack_batch(tmp_path, Batch(rows, len(rows)), lambda _: None))


@pytest.mark.parametrize(
    "harm",
    [{"deep/er/x": b"tow" * 1000}, {"deep/er/x": b"two"}, {"other": b""}, None],
    ids=["content", "size", "more", "fewer"],
)
def test_what_a_host_has_is_compared(tmp_path: Path, harm: dict[str, bytes] | None) -> None:
    rows = make_set(tmp_path)
    check_copy(iter([show(CONTENTS)]), rows, lambda _: None)
    there = {**CONTENTS, **harm} if harm is not None else {"a b/ü": b"one"}
    with pytest.raises(EngineError, match="host"):
        check_copy(iter([show(there)]), rows, lambda _: None)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE])
def test_a_header_without_an_end_takes_no_memory(tmp_path: Path, kind: bytes) -> None:
    head = tarfile.TarInfo("data/x")
    head.type, head.size = kind, 1 << 40
    taken = 0

    def send() -> Iterator[bytes]:
        nonlocal taken
        yield head.tobuf(tarfile.GNU_FORMAT)
        while True:
            taken += 1
            assert taken < 10, "it reads what the header says that it has"
            yield bytes(1 << 18)

    with pytest.raises(EngineError, match="not show what it has in a plain archive"):
        check_copy(send(), make_set(tmp_path), lambda _: None)
