"""The log of an experiment, as clients read it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

LATER = "2027-01-01T00:00:00Z"


def read(client: httpx.Client, name: str, **query: str) -> list[dict[str, Any]]:
    """Return the entries of a log."""
    answer = client.get(f"/v1/experiments/{name}/logs", params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_log_has_the_lines_of_jobs_and_ends(client: httpx.Client) -> None:
    entries = read(client, "1")
    assert [(entry["id"], entry["text"]) for entry in entries if entry["type"] == "line"] == [("1.train", "a line")]
    assert entries[-1]["type"] == "end"


def test_a_reader_goes_on_behind_a_cursor(client: httpx.Client) -> None:
    entries = read(client, "1")
    (line,) = (place for place, entry in enumerate(entries) if entry["type"] == "line")
    assert read(client, "1", cursor=entries[line]["cursor"]) == entries[line + 1 :]


@pytest.mark.parametrize(("query", "lines"), [({"tail": "1"}, 1), ({"tail": "0"}, 0), ({"since": LATER}, 0)])
def test_a_reader_may_ask_for_a_part(client: httpx.Client, query: dict[str, str], lines: int) -> None:
    assert sum(entry["type"] == "line" for entry in read(client, "1", **query)) == lines
