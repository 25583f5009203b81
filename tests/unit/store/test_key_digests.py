"""The digests of keys: what they depend on, and a secret that is damaged or open to others."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from riseml.base.errors import Refused, RisemlError, StoreError
from riseml.store.key_digests import SECRET_FILE, KeyDigests


def test_a_digest_depends_on_the_key_and_the_secret(tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    digests = {KeyDigests(home).compute_digest(key) for home in (tmp_path, other, tmp_path) for key in "ab"}
    assert len(digests) == 4
    assert {len(digest) for digest in digests} == {64}


@pytest.mark.parametrize(
    ("content", "mode", "error", "words"),
    [
        (b"short", 0o600, StoreError, "is damaged: it has 5 bytes"),
        (b"", 0o600, StoreError, "is damaged: it has 0 bytes"),
        (b"x" * 100, 0o600, RisemlError, "is larger than"),
        (b"x" * 32, 0o640, Refused, "not a file of yours alone"),
    ],
)
def test_a_damaged_or_open_secret_is_refused(
    tmp_path: Path, content: bytes, mode: int, error: type[RisemlError], words: str
) -> None:
    path = tmp_path / SECRET_FILE
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(error, match=words):
        KeyDigests(tmp_path).compute_digest("a")
    assert path.read_bytes() == content


def test_threads_that_make_the_secret_at_the_same_moment_have_one(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)
    digests = []

    def compute() -> None:
        barrier.wait()
        digests.append(KeyDigests(tmp_path).compute_digest("a"))

    threads = [threading.Thread(target=compute) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 8
    assert len(set(digests)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [SECRET_FILE]
