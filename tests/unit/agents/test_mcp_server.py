"""Answers of the server of the protocol, asked by the client of the SDK in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from riseml.agents.budget import SessionLimits
from riseml.agents.mcp_server import AgentServer, answer_call, make_server
from riseml.agents.session import AgentSession, Permissions
from riseml.base.errors import NotFound


def call(server: Any, tool: str, **arguments: object) -> Any:
    async def ask() -> Any:
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(ask())


def break_down() -> dict[str, Any]:
    raise ZeroDivisionError("oops")


def find_nothing() -> dict[str, Any]:
    raise NotFound("there is no toaster", "buy one")


@pytest.mark.parametrize(
    ("tool", "code", "cause", "fix"),
    [
        (break_down, "RisemlError", "riseml itself failed: ZeroDivisionError: oops", "ask the user to report"),
        (find_nothing, "NotFound", "there is no toaster", "buy one"),
    ],
)
def test_a_failure_is_an_answer_with_fields(tool: Any, code: str, cause: str, fix: str) -> None:
    server = AgentServer("riseml", log_level="CRITICAL")
    server.add_tool(answer_call(tool), tool.__name__, structured_output=False)
    result = call(server, tool.__name__)
    error = result.structured_content["error"]
    assert (result.is_error, error["code"], error["cause"]) == (True, code, cause)
    assert fix in error["fix"] and fix in result.content[0].text
    assert "Traceback" not in str(result)


def test_each_tool_says_what_it_does_and_what_it_takes(tmp_path: Path) -> None:
    server = make_server(AgentSession(tmp_path, {}, Permissions(SessionLimits(1))))

    async def ask() -> Any:
        async with Client(server) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(ask())
    assert len(tools) == 12
    for tool in tools:
        assert 40 <= len(tool.description) <= 330, tool.name
        for name, shape in tool.input_schema["properties"].items():
            assert shape.get("description"), (tool.name, name)
    assert {tool.name for tool in tools if not tool.annotations.read_only_hint} == {"init", "submit", "stop"}
