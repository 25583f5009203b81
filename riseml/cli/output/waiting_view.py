"""What an experiment that does not run yet waits for, as lines below its log. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from riseml.cli.output.progress import describe_bytes, draw_progress
from riseml.cli.output.style import Style
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import wrap_to_width

if TYPE_CHECKING:
    from riseml import wire

_MOST_LINES = 6
_MOST_HOSTS = 3  # the most hosts whose shortages are shown

Rates = Mapping[tuple[str, str], float | None]
"""Bytes per second, by the host and the kind of work."""


def list_waiting(found: wire.ExplanationView, rates: Rates, style: Style) -> list[str]:
    """Return the work of hosts on the environment, or the place in the queue and what is missing."""
    lines = [line for one in found["activities"] for line in _list_activity(one, rates, style)]
    if not lines:
        lines = [
            line for text in _describe_waiting(found) for line in wrap_to_width(clean_text(text), style.width or 80)
        ]
    return lines[:_MOST_LINES]


def describe_activity(one: wire.ActivityView, rate: float | None = None) -> tuple[str, str]:
    """Return the work of a host, and its progress; both may be foreign."""
    if one["work"] == "install":
        return f"Install step {one['done']} of {one['total']} on {one['host']}", one["what"]
    amounts = describe_bytes(one["done"], one["total"], rate)
    if one["work"] == "send":
        return f"Sending the environment to {one['host']}", amounts
    if one["work"] == "data":
        return f"Fetching {one['what']}", amounts
    return f"Fetching {one['what']} on {one['host']}", amounts


def _list_activity(one: wire.ActivityView, rates: Rates, style: Style) -> list[str]:
    title, amounts = describe_activity(one, rates.get((one["host"], one["work"])))
    done = one["done"] - 1 if one["work"] == "install" else one["done"]
    return draw_progress(title, done / one["total"] if one["total"] else None, amounts, style)


def _describe_waiting(found: wire.ExplanationView) -> Iterator[str]:
    queue = found["queue"]
    if queue is None:
        yield f"{found['id']} {found['state']}: {found['summary']}"
        return
    behind = f", behind {', '.join(queue['ahead'][:_MOST_HOSTS])}" if queue["ahead"] else ""
    yield f"{found['id']} waits at place {queue['position']} of {queue['length']} in the queue{behind}"
    yield found["summary"]
