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


def list_waiting(explanation: wire.ExplanationView, rates: Rates, style: Style) -> list[str]:
    """Return the work of hosts on the environment, or the place in the queue and what is missing."""
    lines = [line for activity in explanation["activities"] for line in _list_activity(activity, rates, style)]
    if not lines:
        lines = [
            line
            for text in _describe_waiting(explanation)
            for line in wrap_to_width(clean_text(text), style.width or 80)
        ]
    return lines[:_MOST_LINES]


def describe_activity(activity: wire.ActivityView, rate: float | None = None) -> tuple[str, str]:
    """Return the work of a host, and its progress; both may be foreign."""
    if activity["work"] == "install":
        return f"Install step {activity['done']} of {activity['total']} on {activity['host']}", activity["what"]
    amounts = describe_bytes(activity["done"], activity["total"], rate)
    if activity["work"] == "send":
        return f"Sending the environment to {activity['host']}", amounts
    if activity["work"] == "data":
        return f"Fetching {activity['what']}", amounts
    return f"Fetching {activity['what']} on {activity['host']}", amounts


def _list_activity(activity: wire.ActivityView, rates: Rates, style: Style) -> list[str]:
    title, amounts = describe_activity(activity, rates.get((activity["host"], activity["work"])))
    amount = activity["done"] - 1 if activity["work"] == "install" else activity["done"]
    return draw_progress(title, amount / activity["total"] if activity["total"] else None, amounts, style)


def _describe_waiting(explanation: wire.ExplanationView) -> Iterator[str]:
    queue = explanation["queue"]
    if queue is None:
        yield f"{explanation['id']} {explanation['state']}: {explanation['summary']}"
        return
    behind = f", behind {', '.join(queue['ahead'][:_MOST_HOSTS])}" if queue["ahead"] else ""
    yield f"{explanation['id']} waits at place {queue['position']} of {queue['length']} in the queue{behind}"
    yield explanation["summary"]
