"""`report`: create, list, show, delete, export; and that nothing hostile reaches an exported page."""

from __future__ import annotations

import io
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from riseml.cli.output.report_page import BlockContent, MediaContent, make_report_page
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import NOW, FakeServer

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
SUMMARY = {"id": "sweep", "user": "me", "project": "", "title": "It works", "version": 2, "changed_at": NOW}


def make_block(kind: str, **fields: Any) -> Any:
    empty: dict[str, Any] = {"pieces": [], "runs": [], "absent": 0, "metric": "", "columns": [], "name": ""}
    return {"kind": kind, "line": 1, **empty, "step": None, "title": "", "problem": "", **fields}


def make_piece(kind: str, tag: str = "", text: str = "", href: str = "") -> Any:
    return {"kind": kind, "tag": tag, "text": text, "href": href}


def make_curve(identity: str) -> Any:
    return {"id": identity, "step": [1, 2], "at": [NOW] * 2, "mean": [0.5, 0.25], "min": [0.5, 0.25]} | {
        "max": [0.5, 0.25],
        "not_finite": [0, 0],
    }


def make_view(*blocks: Any, **fields: Any) -> Any:
    return {**SUMMARY, "text": "# It works\n", "can_change": True, "blocks": list(blocks), **fields}


TEXT = make_block(
    "text", pieces=[make_piece("open", "h1"), make_piece("text", text="It works"), make_piece("close", "h1")]
)
ITEMS = [{"step": step, "path": f"s/{step}.png", "size": 4, "etag": "e"} for step in (1, 5)]


@pytest.fixture
def kept(fake_server: FakeServer) -> FakeServer:
    """A server that has one report."""
    blocks = [
        TEXT,
        make_block("chart", runs=["4"], metric="loss", absent=1),
        make_block("table", runs=["4"], columns=["lr"]),
        make_block("media", runs=["4"], name="s", step=3),
    ]
    table = {"objectives": [], "total": 1, "archived": 0, "matched": 1, "lines": 1, "columns": ["lr"], "available": []}
    line = {"id": "4", "group": "", "count": 1, "ended": 1, "open": False, "inside": False, "state": "FINISHED"}
    line |= {"user": "paul", "team_project": None, "may_change": True, "progress": None, "latest": "", "mixed": []}
    media = {"name": "s", "kind": "picture", "items": ITEMS}
    fake_server.answers |= {
        "GET /reports": (200, {"reports": [SUMMARY]}),
        "GET /reports/sweep": (200, make_view(*blocks)),
        "POST /reports": (200, make_view(TEXT)),
        "POST /reports/remove": (200, SUMMARY),
        "GET /experiments/4/curves": (200, {"metric": "loss", "total": 1, "curves": [make_curve("4")]}),
        "GET /table": (200, {**table, "rows": [{**line, "cells": [0.1]}], "notes": []}),
        "GET /experiments/4/media": (200, {"id": "4", "media": [media], "left_out": 0, "more": False}),
        "GET /experiments/4/media/content": (200, "\x89PNG"),
    }
    return fake_server


def test_a_report_is_created_replaced_listed_shown_and_deleted(riseml: Riseml, kept: FakeServer, folder: Path) -> None:
    (folder / "r.md").write_text("# It works\n")
    assert riseml("report", "create", "sweep", "r.md").out == "Saved sweep, version 2: It works\n"
    assert json.loads(kept.answered["POST /reports"]) == {"name": "sweep", "text": "# It works\n"}
    riseml("report", "create", "sweep", "r.md", "--replace", "--project", "vision")
    sent = json.loads(kept.answered["POST /reports"])
    assert (sent["version"], sent["project"]) == (2, "vision")
    assert "sweep  It works" in riseml("report", "list").out
    assert riseml("report", "show", "sweep").out == "# It works\n"
    assert riseml("report", "delete", "sweep", "--yes").out == "Deleted sweep, version 2: It works\n"
    assert json.loads(riseml("report", "list", "--json").out) == {"reports": [SUMMARY]}


def test_an_exported_report_needs_no_network(riseml: Riseml, kept: FakeServer, folder: Path) -> None:
    exported = json.loads(riseml("report", "export", "sweep", "--json").out)
    page = (folder / "sweep.html").read_text()
    assert exported == {"id": "sweep", "file": "sweep.html", "size": len(page.encode())}
    assert "<h1>It works</h1>" in page
    assert "<polyline" in page
    assert "1 run of this part is not there, or not shared with you." in page
    assert "<td>4</td><td>0.1</td>" in page
    assert "s of 4, step 1</figcaption>" in page, "the last file before the step"
    assert 'src="data:image/png;base64,' in page
    assert "default-src 'none'; img-src data:" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert riseml("report", "export", "sweep", "other.html").out.startswith("Wrote other.html: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("report create sweep gone.md", "cannot read gone.md: No such file or directory"),
        ("report create sweep", "Missing argument 'FILE'"),
        ("report create sweep binary", "binary is not UTF-8 text"),
        ("report create sweep big", "big has more than 1,048,576 bytes"),
        ("report show", "Missing argument 'NAME'"),
        ("report show a b", "unexpected extra argument"),
        ("report show gone", "there is no report gone"),
        ("report list a", "unexpected extra argument"),
        ("report delete sweep", "nothing was deleted: there is no terminal to ask on"),
        ("report delete", "Missing argument 'NAME'"),
        ("report delete gone --yes", "there is no report gone"),
        ("report export gone", "there is no report gone"),
        ("report export sweep no/folder.html", "there is no folder no"),
        ("report export sweep .", "cannot write .: Is a directory"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(riseml: Riseml, kept: FakeServer, folder: Path, words: str, said: str) -> None:
    (folder / "binary").write_bytes(b"\xff\xfe")
    (folder / "big").write_bytes(b"x" * 1_048_577)
    for route in ("GET /reports/gone", "POST /reports/remove"):
        if "gone" in words:
            kept.refuse(route, "NotFound", "there is no report gone", status=404)
    result = riseml(*words.split())
    assert result.code != 0
    assert said.lower() in result.err.lower()


def test_standard_input_is_a_report(riseml: Riseml, kept: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"# From a pipe")))
    assert riseml("report", "create", "sweep", "-").code == 0
    assert json.loads(kept.answered["POST /reports"])["text"] == "# From a pipe"


class _Tags(HTMLParser):
    """Collects what a browser makes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}


def test_a_hostile_server_and_hostile_runs_put_no_element_into_an_exported_page() -> None:
    """Every text of every part is evil, also tags and addresses that no server of riseml sends."""
    links = [
        make_piece("open", "a", href=href) for href in ("javascript:alert(1)", f"https://x/{EVIL}", "//evil", EVIL)
    ]
    pieces = [make_piece("open", "script"), make_piece("open", EVIL), make_piece("close", "style"), *links]
    pieces += [make_piece(kind, text=EVIL) for kind in ("text", "code", "fence")]
    line = {"id": EVIL, "group": "", "count": 1, "open": False, "inside": False, "state": None, "cells": [EVIL]}
    table: Any = {"columns": [EVIL], "rows": [{**line, "mixed": []}], "notes": [EVIL]}
    view = make_view(
        make_block("text", pieces=pieces),
        make_block("problem", problem=EVIL),
        make_block("chart", metric=EVIL, title=EVIL),
        make_block("chart", metric=EVIL),
        make_block("table", title=EVIL),
        make_block("media", name=EVIL),
        id=EVIL,
        title=EVIL,
    )
    contents = [
        BlockContent(),
        BlockContent(problem=EVIL),
        BlockContent(curves=[make_curve(EVIL)]),
        BlockContent(),
        BlockContent(table=table),
        BlockContent(media=[MediaContent(EVIL, 1, ending, EVIL.encode()) for ending in ("png", "svg", "md", EVIL)]),
    ]
    parser = _Tags()
    parser.feed(make_report_page(view, contents, "2026"))
    assert parser.tags.isdisjoint({"script", "iframe", "object", "link", "base", "form"})
    assert not {name for name in parser.attributes if name.startswith("on")}
    assert all(address.startswith(("data:image/", "https://x/")) for address in parser.addresses)
