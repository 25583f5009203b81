"""The log of an experiment, as clients read it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from riseml.base.errors import RisemlError, StoreError, Unauthenticated
from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner
from riseml.planning.plan import first_jobs
from riseml.server.api.routes.log_routes import pass_while_seen, sees_experiment
from riseml.server.gate.request_caller import set_caller
from riseml.store.changes import ChangeLog
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from tests.unit.store.submissions import ANN, NOW, PLAN

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


def test_a_log_of_another_user_ends_when_its_reader_sees_the_experiment_no_more(tmp_path: Path) -> None:
    """Nothing is sent after the reader has left the project; where nobody knows the rights now, the log goes on."""
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    plans = ((PLAN, first_jobs(PLAN)),)
    new = NewExperiments(Owner("paul", 2002, 2002), "toaster", "", "", plans, team_project="vision")
    ((detail,), _) = ExperimentStore(database).add_experiments(new, NOW)
    member = Caller(ANN, Role.MEMBER, Scope.READ, (("vision", Role.VIEWER),))
    answers: list[Caller | RisemlError] = [member, StoreError("the store is away"), replace(member, projects=())]

    def ask() -> Caller:
        answer = answers.pop(0)
        if isinstance(answer, RisemlError):
            raise answer
        return answer

    scope = {"type": "http"}
    set_caller(scope, member, ask)
    request = Request(scope)

    async def print_lines() -> AsyncIterator[bytes]:
        for number in range(9):
            yield b"%d" % number

    async def read() -> list[bytes]:
        changes = ChangeLog(database)
        seen = pass_while_seen(print_lines(), lambda: sees_experiment(request, detail.experiment.id, changes), 0)
        return [line async for line in seen]

    assert asyncio.run(read()) == [b"0", b"1"]
    answers += [Unauthenticated("this key is not valid")]
    assert asyncio.run(read()) == []
    database.close()
