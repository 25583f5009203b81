"""Open requests end with the right of their caller to come in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from riseml.server.gate.open_requests import answer_while_valid


async def answer_for_ever(heard: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        heard.append("ended")


def test_an_answer_ends_when_its_caller_may_not_come_in_any_more() -> None:
    heard: list[str] = []
    answers: Iterator[bool] = iter([True, True, False])
    assert not asyncio.run(answer_while_valid(answer_for_ever(heard), lambda: next(answers), 0.001))
    assert heard == ["ended"]
    assert list(answers) == []


def test_a_short_answer_is_never_asked_about_and_its_failure_is_passed_on() -> None:
    async def answer(*, fails: bool) -> None:
        await asyncio.sleep(0)
        if fails:
            raise ValueError("as the application says")

    def refuse() -> bool:
        raise AssertionError("nobody asks about it")

    assert asyncio.run(answer_while_valid(answer(fails=False), refuse, 600))
    with pytest.raises(ValueError, match="as the application says"):
        asyncio.run(answer_while_valid(answer(fails=True), refuse, 600))


def test_an_answer_ends_with_the_request_itself() -> None:
    heard: list[str] = []

    async def leave() -> None:
        task = asyncio.create_task(answer_while_valid(answer_for_ever(heard), lambda: True, 600))
        await asyncio.sleep(0)  # it has begun
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert heard == ["ended"]
