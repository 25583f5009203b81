"""A folder of an object store to which the server writes: a store in memory in place of the service."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5

import obstore
import pytest
from obstore.store import MemoryStore

from riseml.base.errors import EngineError
from riseml.data_stores.object_target import ObjectTarget
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import parse_data_url

LARGE = 20 << 20  # bytes, which go in parts


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """All objects of the store."""
    objects = MemoryStore()
    monkeypatch.setattr("riseml.data_stores.object_target.connect_store", lambda *_: objects)
    return objects


def open_folder(*, etag_is_md5: bool = True) -> ObjectTarget:
    return ObjectTarget(parse_data_url("s3://runs/paul/4"), Store("lab", (), etag_is_md5=etag_is_md5))


@pytest.mark.parametrize("size", [0, 5, LARGE])
def test_an_object_is_read_as_it_was_written(objects: MemoryStore, size: int) -> None:
    target = open_folder()
    target.write("a/model", size, iter([b"x" * (size // 2), b"y" * (size - size // 2)]))
    assert [page["path"] for pages in obstore.list(objects) for page in pages] == ["paul/4/a/model"]
    if size:
        assert target.read("a/model", size - 2, size + 9) == b"yy"


def test_a_missing_object_is_none_and_its_removal_no_error(objects: MemoryStore) -> None:
    target = open_folder()
    assert target.read("absent", 0, 9) is None
    target.remove(["absent"])


def test_objects_are_copied_listed_and_removed(objects: MemoryStore) -> None:
    target = open_folder()
    for key in ("aside/a", "aside/b", "c"):
        target.write(key, 1, iter([key[-1:].encode()]))
    target.copy("aside/a", "a")
    assert sorted(target.list_keys("aside")) == ["aside/a", "aside/b"]
    target.remove(["aside/a", "aside/b"])
    assert target.list_keys("aside") == []
    assert target.read("a", 0, 1) == b"a"


@pytest.mark.parametrize("size", [5, LARGE])
def test_nothing_is_written_where_the_file_cannot_be_read(objects: MemoryStore, size: int) -> None:
    def read() -> Iterator[bytes]:
        yield b"x"
        raise PermissionError("the output is gone")

    with pytest.raises(PermissionError, match="the output is gone"):
        open_folder().write("model", size, read())
    assert open_folder().read("model", 0, 1) is None


def test_a_large_object_that_is_not_whole_is_refused(objects: MemoryStore) -> None:
    with pytest.raises(EngineError, match="the store has 3 of 20,971,520 bytes of 'model'"):
        open_folder().write("model", LARGE, iter([b"xyz"]))


@pytest.mark.parametrize(
    ("etag", "etag_is_md5", "refused"),
    [
        (md5(b"sent").hexdigest(), True, False),
        (f'"{md5(b"sent").hexdigest()}"', True, False),
        (md5(b"other").hexdigest(), True, True),
        (md5(b"other").hexdigest(), False, False),
        ("0x8D4BCC2E4835CD0", True, False),
    ],
)
def test_an_etag_that_is_the_md5_of_other_content_is_refused(
    objects: MemoryStore, monkeypatch: pytest.MonkeyPatch, etag: str, *, etag_is_md5: bool, refused: bool
) -> None:
    monkeypatch.setattr("obstore.put", lambda *_, **__: {"e_tag": etag})
    target = open_folder(etag_is_md5=etag_is_md5)
    if not refused:
        target.write("a", 4, iter([b"sent"]))
        return
    with pytest.raises(EngineError, match="is not what was sent") as raised:
        target.write("a", 4, iter([b"sent"]))
    assert raised.value.permanent
    assert "etag_is_md5: false" in str(raised.value.hint)
