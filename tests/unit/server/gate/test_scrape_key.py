"""The key with which Prometheus reads /metrics: what it opens, and a file that changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from riseml.base.errors import Refused, RisemlError, Unauthenticated, UsageError
from riseml.model import Caller
from riseml.server.gate.key_gate import KeyGate
from riseml.server.gate.request_caller import get_caller
from riseml.server.gate.scrape_key import SCRAPER, ScrapeKey

KEY = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"


class NoKey:
    """Knows no key of a user."""

    def find_caller(self, token: str, address: str) -> Caller:
        raise Unauthenticated("this key is not valid", None)


def write_key(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "scrape"
    (fresh := folder / "fresh").write_text(text)
    fresh.chmod(mode)
    fresh.replace(path)
    return path


def ask(key: ScrapeKey, token: str, path: str = "/metrics", method: str = "GET", kind: str = "http") -> int:
    """Return the status of the gate's answer; 200: the request passed as the scraper's."""
    sent: list[Message] = []

    async def api(scope: Scope, receive: Receive, send: Send) -> None:
        assert get_caller(scope) is SCRAPER
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": kind, "method": method, "path": path, "client": ("10.0.0.1", 4711), "headers": headers}
    asyncio.run(KeyGate(api, NoKey(), key)(scope, receive, send))
    return int(sent[0].get("status", 0))


def test_the_key_of_the_scraper_opens_metrics_and_nothing_else(tmp_path: Path) -> None:
    key = ScrapeKey(write_key(tmp_path, f"{KEY}\n"))
    assert (ask(key, KEY), ask(key, KEY, method="HEAD")) == (200, 200)
    for wrong in (OTHER, KEY[:-1], f"{KEY}x", ""):
        assert ask(key, wrong) == 401
    for path in ("/v1/server", "/v1/metrics/names", "/metrics/", "/metrics/x", "/openapi.json"):
        assert ask(key, KEY, path) == 401
    assert ask(key, KEY, method="POST") == 401
    assert ask(key, KEY, kind="websocket") == 0


def test_a_renewed_key_counts_at_once_and_a_file_without_one_opens_nothing(tmp_path: Path) -> None:
    key = ScrapeKey(write_key(tmp_path, KEY))
    write_key(tmp_path, OTHER)
    assert (ask(key, KEY), ask(key, OTHER)) == (401, 200)
    for text, mode in (("short", 0o600), ("", 0o600), (OTHER, 0o644)):
        write_key(tmp_path, text, mode)
        assert (ask(key, OTHER), ask(key, text)) == (401, 401)
    (tmp_path / "scrape").unlink()
    assert ask(key, OTHER) == 401
    write_key(tmp_path, KEY)
    assert ask(key, KEY) == 200


@pytest.mark.parametrize(
    ("text", "mode", "error"),
    [
        ("short\n", 0o600, UsageError),
        (" \n", 0o600, UsageError),
        (KEY, 0o644, Refused),
        ("x" * 5000, 0o600, UsageError),
    ],
)
def test_a_server_does_not_start_with_a_file_without_a_key(
    tmp_path: Path, text: str, mode: int, error: type[RisemlError]
) -> None:
    with pytest.raises(error) as raised:
        ScrapeKey(write_key(tmp_path, text, mode))
    assert str(tmp_path / "scrape") in raised.value.message
