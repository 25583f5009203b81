"""A view of the server's answer: printed once, or again and again in its place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from riseml.base.records import dataclass

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client

_REFRESH_INTERVAL = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class ViewContent:
    """One answer of the server, ready to print."""

    answer: object  # what `--json` prints
    lines: list[str]  # what is printed otherwise
    final: bool  # True when later answers will be the same


@dataclass(frozen=True, slots=True)
class ViewMode:
    """How a view is printed."""

    json: bool
    refresh: bool  # refresh it in place every 2 s, until it is final


def print_view(command: CommandContext, client: Client, fetch: Callable[[], ViewContent], mode: ViewMode) -> None:
    """Print a view once, or refresh it. A refreshed view continues after a lost server, as a followed log does.

    Args:
        command: the running command.
        client: of the server that `fetch` asks.
        fetch: returns the content as it is now.
        mode: how it is printed.
    """
    try:
        with client.watch_server() if mode.refresh else nullcontext():
            _refresh_view(command, client, fetch, mode)
    finally:
        command.printer.end_redraw()


def _refresh_view(command: CommandContext, client: Client, fetch: Callable[[], ViewContent], mode: ViewMode) -> None:
    while True:
        content = _fetch_again(command, client, fetch) if mode.refresh else fetch()
        if mode.json:
            command.printer.print_json(content.answer)
        elif mode.refresh:
            command.printer.redraw(content.lines)
        else:
            command.printer.print_lines(content.lines)
        if not mode.refresh or content.final:
            return
        command.wait(_REFRESH_INTERVAL)


def _fetch_again(command: CommandContext, client: Client, fetch: Callable[[], ViewContent]) -> ViewContent:
    from riseml.submission.reconnection import make_reconnect

    return client.ask_until_answered(fetch, make_reconnect(command, client))
