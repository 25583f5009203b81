"""The hands of an agent: calls of the tools of `riseml mcp`, over standard streams, by the client of the SDK."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.support.waiting import DEADLINE


class AgentHands:
    """One session of `riseml mcp`.

    Example:
        with open_hands(folder, environ, "--experiments", "2") as hands:
            token = hands.call("plan")["token"]
    """

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client
        self.said = ""  # everything that the tools have answered

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a tool that must succeed."""
        result = self._call(tool, arguments)
        assert not result.is_error, result.content[0].text
        answer: dict[str, Any] = result.structured_content
        assert answer["summary"] == result.content[0].text
        return answer

    def refuse(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the error of a tool that must refuse: code, cause, location, fix."""
        result = self._call(tool, arguments)
        assert result.is_error, result.structured_content
        error: dict[str, Any] = result.structured_content["error"]
        return error

    def run(self, **arguments: Any) -> str:
        """Plan, submit and wait; return the ID of the experiment."""
        token = self.call("plan", **arguments)["token"]
        identity: str = self.call("submit", token=token)["experiment"]["id"]
        return identity

    def wait_end(self, identity: str) -> dict[str, Any]:
        """Return an experiment that has ended, and whose log is complete."""
        for _ in range(DEADLINE // 20):
            view: dict[str, Any] = self.call("status", experiment=identity, wait_seconds=20)["experiments"][0]
            if view["ended_at"] is not None:
                self.call("status", experiment=identity, wait_seconds=60)  # until the last line of its log is there
                return view
        raise AssertionError(f"experiment {identity} does not end: {view}")

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        result = self.portal.call(self.client.call_tool, tool, dict(arguments))
        self.said += "".join(part.text for part in result.content if part.type == "text")
        return result


@contextmanager
def open_hands(folder: Path, environ: Mapping[str, str], *options: str) -> Iterator[AgentHands]:
    """Start `riseml mcp` in a folder, and give its tools."""
    words = ["-m", "riseml.cli", "mcp", *options]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(environ), cwd=folder)
    with start_blocking_portal() as portal:
        client = Client(server, read_timeout_seconds=DEADLINE)
        with portal.wrap_async_context_manager(client):
            yield AgentHands(portal, client)
