"""Requests that no client sends by accident: the server refuses each in one sentence, with the right status."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from urllib.parse import quote

import httpx
import pytest

from riseml.server.api.limits import MOST_BODY
from tests.support.rig import single
from tests.unit.server.api.conftest import DIGEST, SUBMISSION

JSON = {"Content-Type": "application/json"}
OTHER = "0" * 64
TINY = "0001-01-01T00:00:00%2B14:00"

GETS = {
    "no number": ("experiments/x", 400, "'x' is not an experiment ID"),
    "a number beyond every store": ("experiments/99999999999999999999", 400, "is not an experiment ID"),
    "digits of another script": ("experiments/٣", 400, "is not an experiment ID"),
    "a very long name": (f"experiments/{'1' * 300}", 422, "at path.name"),
    "another user's": ("experiments/other.1", 404, "there is no experiment other.1"),
    "no such job": ("experiments/1.worker.7", 404, "has no job worker.7"),
    "a set has no TF_CONFIG": ("experiments/2/tfconfig", 400, "2 is a set"),
    "a set has no environment": ("experiments/2/environment", 400, "2 is a set"),
    "no cursor": ("experiments/1/logs?cursor=x", 400, "'x' is not a cursor"),
    "a cursor beyond every file": (f"experiments/1/logs?cursor=0.{2**62}", 400, "is not a cursor"),
    "a cursor beyond every store": (f"experiments/1/logs?cursor={2**40}.0", 400, "is not a cursor"),
    "a cursor of too many digits": (f"experiments/1/logs?cursor={'1' * 5000}.0", 400, "is not a cursor"),
    "a cursor of another stream": ("experiments/2/logs?cursor=0.0", 400, "is not a cursor"),
    **{
        f"the cursor {text}": (f"experiments/1/logs?cursor={quote(text)}", 400, "is not a cursor of this log")
        for text in (
            *(
                "0",
                "0.",
                ".0",
                "0.0.0.0",
                "0.0,",
                ",0.0",
                "0.0,0.0",
                "0.-1",
                "-1.0",
                "%2B0.0",
                "0_0.0",
                " 0.0",
                "1e3.0",
            ),
            *("\u0663.\u0660", "0.0.1", "0.1", "0.20", "0.999", "0.999.999", "0.999.990", "0x0.0", "None", "0.0\n"),
        )
    },
    "a moment beyond the calendar": (f"experiments/1/logs?since={TINY}", 400, "beyond the calendar"),
    "a tail below nothing": ("experiments/1/logs?tail=-1", 422, "at query.tail"),
    "a limit of everything": ("experiments?limit=99999999999", 422, "at query.limit"),
    "a NUL": ("experiments?project=%00", 400, "holds a NUL character"),
    "no such address": ("hosts", 404, "no such address"),
}


def say(response: httpx.Response) -> str:
    """The sentence of a refusal, which has the shape of all refusals."""
    error = response.json()["error"]
    assert set(error) >= {"kind", "message", "hint", "exit_code"}
    assert "Traceback" not in response.text
    return str(error["message"])


@pytest.mark.parametrize("name", GETS)
def test_an_odd_question(client: httpx.Client, name: str) -> None:
    path, status, words = GETS[name]
    response = client.get(f"/v1/{path}")
    assert (response.status_code, words in say(response)) == (status, True), response.text


POSTS: dict[str, tuple[dict[str, object], int, str]] = {
    "a NUL in a parameter": ({"parameters": [["lr", "0\0"]]}, 400, "NUL"),
    "a NUL in a variable": ({"environment": {"A\0": "x"}}, 400, "NUL"),
    "a NUL in the file": ({"config": "project: a\0"}, 400, "NUL"),
    "half a character": ({"file": "\ud800"}, 422, "at body.file"),
    "a key that is too long": ({"key": "k" * 65}, 422, "at body.key"),
    "a file that is too long": ({"config": "x" * (2**20 + 1)}, 422, "at body.config"),
    "too many variables": ({"environment": {str(one): "" for one in range(1001)}}, 422, "at body.environment"),
    "no digest": ({"snapshot": "../../etc/passwd"}, 400, "is not the digest"),
    "files that no client uploaded": ({"snapshot": OTHER}, 404, "are not on the server"),
    "problems in riseml.yml": ({"config": "project: [a"}, 422, ""),
    "more than any host has": ({"config": single("true", resources={"cpus": 9999, "mem": 64})}, 403, "can never run"),
    "a grid without end": ({"config": single("{{a}}", parameters={"a": {"range": [0, 1001]}})}, 422, ""),
}


@pytest.mark.parametrize("route", ["plans", "experiments"])
@pytest.mark.parametrize("name", POSTS)
def test_an_odd_submission(client: httpx.Client, route: str, name: str) -> None:
    fields, status, words = POSTS[name]
    response = client.post(f"/v1/{route}", content=json.dumps(SUBMISSION | fields), headers=JSON)
    if (route, status) == ("plans", 403):
        assert response.status_code == 200, "a plan only says that it would wait"
        return
    assert (response.status_code, words in say(response)) == (status, True), response.text


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 422), (b"{", 422), (b"[" * 200_000, 400), (b'"\xff"', 400), (b"null", 422), (b"1e999", 422)],
)
def test_a_body_that_is_not_a_submission(client: httpx.Client, body: bytes, status: int) -> None:
    response = client.post("/v1/experiments", content=body, headers=JSON)
    assert response.status_code == status, response.text
    say(response)


def test_a_body_without_end_is_not_read_to_its_end(client: httpx.Client) -> None:
    sent = 0

    def flood() -> Iterator[bytes]:
        nonlocal sent
        while sent < 100 * MOST_BODY:
            sent += 2**20
            yield b" " * 2**20

    try:
        response = client.post("/v1/experiments", content=flood(), headers=JSON)
    except httpx.TransportError:  # it may hang up on us before we have read its answer
        pass
    else:
        assert response.status_code == 413
        assert "8,388,608 bytes" in say(response)
    assert sent < 50 * MOST_BODY
    assert client.get("/v1/server").status_code == 200


def test_what_is_not_allowed_says_what_is(client: httpx.Client) -> None:
    response = client.delete("/v1/experiments/1")
    assert (response.status_code, response.headers["allow"]) == (405, "GET")
    say(response)


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


def test_lists_are_filtered_and_sorted(client: httpx.Client) -> None:
    def ask(**params: str | int) -> list[str]:
        answer = client.get("/v1/experiments", params={"all": "true", **params})
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["experiments"]]

    assert ask(sort="number") == ["1", "2", "3"]
    assert ask(sort="-number", limit=1, offset=1) == ["2"]
    assert ask(text="lr=0.2") == ["2"]
    assert ask(state="CREATED") == ["3"]
    assert ask(state="CREATED", user="somebody") == []
    for query, code in ("sort=-ended&before=3", 400), ("sort=size", 422), ("state=DONE", 422):
        assert client.get(f"/v1/experiments?{query}").status_code == code
    assert client.get("/v1/experiments?text=%00").status_code == 400
