"""Submissions and uploads: what a client repeats is taken once, and a hostile upload leaves nothing."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import httpx
import pytest

from tests.unit.server.api.conftest import DIGEST, OTHER, SUBMISSION, say


def test_the_repeat_of_an_accepted_submission_is_not_refused(client: httpx.Client) -> None:
    first = client.post("/v1/experiments", json=SUBMISSION | {"key": "k"})
    gone = SUBMISSION | {"key": "k", "snapshot": "0" * 64}  # its files were removed meanwhile
    again = client.post("/v1/experiments", json=gone)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
    assert client.post("/v1/experiments", json=gone | {"key": "other"}).status_code == 404
    assert client.post("/v1/experiments", json=SUBMISSION | {"key": "\0"}).status_code == 400


def test_the_repeat_of_an_accepted_tensorboard_is_not_refused(client: httpx.Client) -> None:
    first = client.post("/v1/experiments", json=SUBMISSION | {"key": "board"})  # no TensorBoard can start here
    order = {"experiments": ["99"], "key": "board"}  # its experiment was removed meanwhile
    again = client.post("/v1/tensorboards", json=order)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])


def _link(name: str, target: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    return entry


def _typed(kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo("odd")
    entry.type, entry.linkname = kind, "riseml.yml"
    return entry


def _sparse() -> bytes:
    """A few bytes that stand for a TiB."""
    entry = tarfile.TarInfo("huge")
    entry.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    head[483:495] = b"17777777777\0"
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    return bytes(head) + bytes(1024)


def _tar(*entries: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for entry in entries:
            tar.addfile(entry)
    return buffer.getvalue()


UPLOADS: dict[str, tuple[Callable[[], bytes], str]] = {
    "no tar": (lambda: b"x" * 10_000, "is not a tar archive"),
    "half a tar": (lambda: _tar(tarfile.TarInfo("a"))[:300], "is not a tar archive"),
    "a device": (lambda: _tar(_typed(tarfile.CHRTYPE)), "neither a file, a folder nor a link"),
    "a pipe": (lambda: _tar(_typed(tarfile.FIFOTYPE)), "neither a file, a folder nor a link"),
    "a hard link": (lambda: _tar(_typed(tarfile.LNKTYPE)), "neither a file, a folder nor a link"),
    "a file with holes": (_sparse, "neither a file, a folder nor a link"),
    "a path to the root": (lambda: _tar(tarfile.TarInfo("/etc/passwd")), "leads out of the project"),
    "a path upwards": (lambda: _tar(tarfile.TarInfo("a/../../b")), "leads out of the project"),
    "a link to the root": (lambda: _tar(_link("a", "/etc")), "leads out of the project"),
    "a link upwards": (lambda: _tar(_link("a/b", "../../c")), "leads out of the project"),
    "a file below a link": (lambda: _tar(_link("a", "b"), tarfile.TarInfo("a/x")), "is below a link"),
    "the same path twice": (lambda: _tar(tarfile.TarInfo("a"), _link("a", "b")), "is there twice"),
}


@pytest.mark.parametrize("name", UPLOADS)
def test_a_hostile_upload_leaves_nothing(client: httpx.Client, name: str) -> None:
    make, words = UPLOADS[name]
    response = client.put(f"/v1/snapshots/{OTHER}", content=make())
    assert (response.status_code, words in say(response)) == (400, True), response.text
    assert client.head(f"/v1/snapshots/{OTHER}").status_code == 404
    assert client.head(f"/v1/snapshots/{DIGEST}").status_code == 200


@pytest.mark.parametrize("digest", ["x", "A" * 64, "%2e%2e%2f%2e%2e", "0" * 63])
def test_an_upload_with_an_invalid_digest_is_refused(client: httpx.Client, digest: str) -> None:
    response = client.put(f"/v1/snapshots/{digest}", content=b"")
    assert response.status_code in (400, 404)
    say(response)
