"""Listings of files, as the server answers them."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.fake_server import FakeServer


def entry(path: str, kind: str = "file", **more: Any) -> dict[str, Any]:
    shape = {"path": path, "kind": kind, "size": 0, "mtime": 10**18, "executable": False, "target": None, "etag": "e"}
    return {**shape, **more}


def answer_listing(fake_server: FakeServer, *entries: dict[str, Any]) -> None:
    listing = {"at": entry("", "folder"), "entries": list(entries), "next": None}
    fake_server.answers["GET /files"] = (200, listing)
