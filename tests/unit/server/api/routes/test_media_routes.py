"""The routes of media: lists, contents that never become a page, and parts as players ask for them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.unit.server.api.conftest import say

CONTENT = bytes(range(256)) * 20
EVIL = b"<script>window.pwned=1</script>"


@pytest.fixture(scope="module")
def media(url: str) -> Path:
    """The folder of media of experiment 1."""
    folder = Path(httpx.get(f"{url}/v1/experiments/1").json()["output"]) / "media"
    for name, content in {
        "speech/1.ogg": CONTENT,
        "page/1.html": EVIL,
        "page/1.svg": EVIL,
        "empty/1.txt": b"",
        "final.png": b"",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "page" / "2.png").symlink_to("/etc/passwd")
    return folder


def test_media_are_listed_by_name(client: httpx.Client, media: Path) -> None:
    answer = client.get("/v1/experiments/1/media").json()
    found = [
        (one["name"], one["kind"], [(item["step"], item["path"]) for item in one["items"]]) for one in answer["media"]
    ]
    assert found == [
        ("empty", "text", [(1, "empty/1.txt")]),
        ("page", "picture", [(1, "page/1.svg")]),
        ("page", "text", [(1, "page/1.html")]),
        ("speech", "sound", [(1, "speech/1.ogg")]),
    ]
    assert (answer["id"], answer["left_out"], answer["more"]) == ("1", 2, False)
    assert client.get("/v1/experiments/3/media").json() == {"id": "3", "media": [], "left_out": 0, "more": False}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("page/1.html", "text/plain; charset=utf-8"),
        ("page/1.svg", "text/plain; charset=utf-8"),
        ("speech/1.ogg", "audio/ogg"),
    ],
)
def test_no_content_becomes_a_page(client: httpx.Client, media: Path, path: str, kind: str) -> None:
    answer = client.get("/v1/experiments/1/media/content", params={"path": path})
    assert answer.content == (media / path).read_bytes()
    headers = {"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment"}
    headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    assert {name: answer.headers[name] for name in headers} == headers


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("bytes=0-9", (206, CONTENT[:10], "bytes 0-9/5120")),
        ("bytes=5000-", (206, CONTENT[5000:], "bytes 5000-5119/5120")),
        ("bytes=-7", (206, CONTENT[-7:], "bytes 5113-5119/5120")),
        ("bytes=100-99999", (206, CONTENT[100:], "bytes 100-5119/5120")),
        ("bytes=0-", (200, CONTENT, None)),
        ("bytes=-", (200, CONTENT, None)),
        ("bytes=1-2,4-5", (200, CONTENT, None)),
        ("lines=1-2", (200, CONTENT, None)),
        ("bytes=5120-", (416, b"", "bytes */5120")),
        ("bytes=9-3", (416, b"", "bytes */5120")),
        ("bytes=-0", (416, b"", "bytes */5120")),
    ],
)
def test_players_get_the_part_that_they_ask_for(
    client: httpx.Client, media: Path, part: str, expected: tuple[int, bytes, str | None]
) -> None:
    answer = client.get("/v1/experiments/1/media/content", params={"path": "speech/1.ogg"}, headers={"Range": part})
    assert (answer.status_code, answer.content, answer.headers.get("Content-Range")) == expected
    assert answer.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    ("name", "path", "status", "words"),
    [
        ("1", "final.png", 400, "'final.png' is no path of media"),
        ("1", "../../server.log", 400, "'../../server.log' is no path of media"),
        ("1", "page/1.js", 400, "'page/1.js' is no path of media"),
        ("1", "page/9.png", 404, "does not exist"),
        ("1", "page/2.png", 404, "page/2.png is not a file"),
        ("2", "page/1.png", 400, "2 is a set"),
        ("99", "page/1.png", 404, "there is no experiment 99"),
    ],
)
def test_what_is_no_media_is_refused_in_words(
    client: httpx.Client, media: Path, name: str, path: str, status: int, words: str
) -> None:
    answer = client.get(f"/v1/experiments/{name}/media/content", params={"path": path})
    assert (answer.status_code, words in say(answer)) == (status, True), say(answer)


def test_an_empty_file_has_no_part(client: httpx.Client, media: Path) -> None:
    whole = client.get("/v1/experiments/1/media/content", params={"path": "empty/1.txt"})
    assert (whole.status_code, whole.content) == (200, b"")
    part = client.get("/v1/experiments/1/media/content", params={"path": "empty/1.txt"}, headers={"Range": "bytes=0-"})
    assert part.status_code == 416
