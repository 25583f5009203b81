"""Pages of a log."""

from __future__ import annotations

import pytest

from riseml.agents.run_tools import LogPage
from riseml.base.errors import UsageError
from riseml.client.server_client import Client
from tests.unit.cli.fake_server import FakeServer, end, line, make_experiment


@pytest.fixture(autouse=True)
def log(fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    # one cursor names a line and those before it: c and d come again after the cursor of b
    fake_server.entries = [line("a", 1), line("b", 2), line("c", 2), line("d", 3), line("\x1b[31me\x1b[0m", 4), end()]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_pages_have_each_line_once(client: Client, limit: int) -> None:
    cursor, texts = "1", []
    for _ in range(9):
        page = LogPage(limit, cursor)
        page.read(client, "4", 0)
        texts += [entry["text"] for entry in page.lines]
        assert len(page.lines) <= limit
        if not page.has_more:
            break
        assert page.cursor != cursor
        cursor = page.cursor
    assert texts == ["b", "c", "d", "e"]


@pytest.mark.parametrize(("cursor", "has_more", "first"), [("1", True, "2"), ("", False, "24")])
def test_a_page_has_no_more_characters_than_an_agent_reads(
    client: Client, fake_server: FakeServer, cursor: str, *, has_more: bool, first: str
) -> None:
    fake_server.entries = [*(line(f"{at} " + "x" * 3000, at) for at in range(1, 30)), end()]
    page = LogPage(500, cursor)
    page.read(client, "4", 0)
    assert (page.has_more, len(page.lines)) == (has_more, 7 if has_more else 6)
    assert page.lines[0]["text"].split()[0] == first


def test_a_wait_ends_with_the_log(client: Client) -> None:
    page = LogPage(10, "3")
    page.read(client, "4", 60)
    assert [entry["text"] for entry in page.lines] == ["e"] and page.end is not None


@pytest.mark.parametrize("cursor", ["+3", "1+x", "1+-2", "1+" + "9" * 20])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(UsageError, match="is not a cursor of this log"):
        LogPage(10, cursor)
