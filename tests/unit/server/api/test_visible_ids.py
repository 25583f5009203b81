"""What answers about experiments say to each caller: IDs with users, and nothing of what the caller does not see."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from riseml.base.names import parse_id
from riseml.base.roles import Role, Scope
from riseml.base.states import State
from riseml.control.observation import Observation
from riseml.control.permissions import may_change, may_see
from riseml.model import Caller, Owner
from riseml.planning.plan import first_jobs
from riseml.server.app import Application
from riseml.store.insertion import NewExperiments
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_rows import MetricRows, TallyRow
from riseml.store.metrics.metric_summary import MetricCount
from tests.support.callers import call_as
from tests.unit.control.simulation import make_plan
from tests.unit.server.stored_experiments import NOW, open_application

ANN, PAUL = Owner("ann", 2001, 2001), Owner("paul", 2002, 2002)
STORED = [(PAUL, None, 1), (PAUL, "vision", 1), (PAUL, "words", 3), (ANN, "vision", 2), (ANN, None, 1)]
"""Whose, in which team project, and how many: above 1 it is a set. `paul.1` and `ann.1` are both number 1."""
CALLERS = {
    "paul": Caller(PAUL, Role.MEMBER, Scope.ADMIN, (("vision", Role.MEMBER),)),
    "ann, who looks at words": Caller(
        ANN, Role.MEMBER, Scope.RUN, (("vision", Role.MAINTAINER), ("words", Role.VIEWER))
    ),
    "ann, as a viewer": Caller(ANN, Role.VIEWER, Scope.READ, (("vision", Role.MEMBER),)),
    "paul with a key to look": Caller(PAUL, Role.MEMBER, Scope.READ, (("vision", Role.MAINTAINER),), key="k"),
    "eva, of no project": Caller(Owner("eva", 2003, 2003), Role.MEMBER, Scope.RUN),
    "admin": Caller(Owner("alice", 2004, 2004), Role.ADMIN, Scope.ADMIN),
    "paul with a key of vision": Caller(PAUL, Role.MEMBER, Scope.RUN, (("vision", Role.MEMBER),), "vision", key="k"),
}


@dataclass(frozen=True)
class Entry:
    """One stored experiment or set."""

    user: str
    team_project: str | None
    number: int
    members: int

    def name(self, caller: Caller) -> str:
        return str(self.number) if self.user == caller.user else f"{self.user}.{self.number}"

    @property
    def mark(self) -> str:
        """A text that only this one has: a parameter and a metric."""
        return f"mark-{self.user}-{self.number}"


@dataclass(frozen=True)
class Scene:
    """A server with experiments of two users."""

    application: Application
    entries: tuple[Entry, ...]

    def ask(self, caller: Caller, path: str) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=call_as(self.application.api, caller))
            async with httpx.AsyncClient(transport=transport, base_url="http://riseml/v1") as client:
                return await client.get(path)

        return asyncio.run(send())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with open_application(tmp_path_factory.mktemp("home")) as application:
        application.services.loops.passes.observation = Observation(NOW, {})  # there is no loop to wait for
        yield Scene(application, tuple(_store(application, *stored) for stored in STORED))


def _store(application: Application, owner: Owner, team_project: str | None, members: int) -> Entry:
    stores = application.services.stores
    before = stores.experiments.list_experiments(owner.user, ended=True, project=None, limit=None)
    number = 1 + len({detail.experiment.number for detail in before})
    entry = Entry(owner.user, team_project, number, members)
    plan = replace(make_plan("train"), parameters=(("mark", entry.mark),), project="toaster")
    rows = ((plan, first_jobs(plan)),) * members
    concurrency = 2 if members > 1 else None
    new = NewExperiments(owner, "toaster", "", "", rows, team_project=team_project, concurrency=concurrency)
    details, _ = stores.experiments.add_experiments(new, NOW)
    for detail in details:
        jobs = tuple(replace(job, state=State.RUNNING, started_at=NOW) for job in detail.experiment.jobs)
        after = replace(detail.experiment, state=State.RUNNING, jobs=jobs, started_at=NOW)
        assert stores.experiments.save_decision(detail.experiment, after, NOW)
        metric = MetricCount(entry.mark)
        metric.add(0.5, 1, "2026-08-31T07:23:46Z", 1)
        summaries = {entry.mark: metric.summarize()}
        tally = TallyRow(detail.experiment.id, ReadPosition(), complete=True, summaries=summaries)
        MetricRows(application.database).save_tallies([(tally, {})])
    return entry


def _list_ids(answer: Any) -> Iterator[str]:
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key == "id" and isinstance(value, str) and value:  # a line of a table that is a group has none
                yield value
            yield from value if key in ("names", "code_unknown") and "experiments" in answer else _list_ids(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _list_ids(value)


def _list_paths(caller: Caller, entries: list[Entry]) -> Iterator[str]:
    """Yield requests about all that a caller sees, and about all of it together."""
    yield from (
        "/experiments?all=true",
        "/experiments?all_users=true&all=true",
        "/experiments?all_users=true&sort=state",
    )
    yield from ("/experiments?all=true&user=paul", "/experiments?all_users=true&team_project=vision", "/samples")
    yield from ("/metrics/names?all_users=true", "/metrics/names", "/pool/queue", "/names", "/table?column=id")
    for group in ("", "&group=set", "&group=user"):
        yield f"/table?all_users=true&available=true{group}"
    yield "/table?team_project=vision&column=id&column=user&word=-nowhere"
    singles = []
    for entry in entries:
        name = entry.name(caller)
        first = name if entry.members == 1 else f"{name}.1"
        singles.append(first)
        yield from (
            f"/experiments/{name}{part}" for part in ("", "/metrics", "/samples", f"/curves?metric={entry.mark}")
        )
        yield from (
            f"/experiments/{first}{part}" for part in ("/events", "/lines", "/explain", "/tfconfig", "/stragglers")
        )
        yield f"/experiments/{first}/metrics/history?metric={entry.mark}"
        yield f"/experiments/{first}/environment"
        yield f"/experiments/{name}/samples?step=86400"
        yield f"/metrics/values?all_users=true&metric={quote(entry.mark)}"
        yield f"/experiments?all_users=true&all=true&limit=2&older_than={name}"
    if singles:
        yield "/results?" + "&".join(f"of={entry.name(caller)}" for entry in entries)
    if len(singles) > 1:
        yield "/comparison?" + "&".join(f"of={name}" for name in singles)


@pytest.mark.parametrize("name", CALLERS)
def test_an_answer_names_users_and_tells_nothing_of_what_the_caller_does_not_see(scene: Scene, name: str) -> None:
    caller = CALLERS[name]
    seen = [entry for entry in scene.entries if may_see(caller, entry.user, entry.team_project)]
    hidden = [entry for entry in scene.entries if entry not in seen]
    names = {entry.name(caller) for entry in seen}
    told = set()
    for path in _list_paths(caller, seen):
        answer = scene.ask(caller, path)
        assert answer.status_code == 200, (path, answer.text)
        for identity in _list_ids(answer.json()):
            parsed = parse_id(identity)
            assert parsed.user != caller.user, (path, identity)
            assert str(replace(parsed, sub=None, job_type=None, index=None)) in names, (path, identity)
        assert [entry.mark for entry in hidden if entry.mark in answer.text] == [], path
        told |= {entry for entry in seen if entry.mark in answer.text}
    assert told == set(seen)
    for entry in seen:
        log = scene.ask(caller, f"/experiments/{entry.name(caller)}/logs?follow=false").text.splitlines()
        heads = {json.loads(line).get("id", "").removeprefix(entry.name(caller))[:1] for line in log}
        assert heads <= {"", "."}, "each entry is of this experiment, of a member or of a job"
        assert len(log) > entry.members
    for entry in hidden:
        absent = scene.ask(caller, f"/experiments/{entry.name(caller)}")
        assert absent.status_code == 404
        assert scene.ask(caller, f"/results?of={entry.name(caller)}").status_code == 404
        assert scene.ask(caller, f"/experiments?all_users=true&older_than={entry.name(caller)}").status_code == 404


@pytest.mark.parametrize("name", CALLERS)
def test_a_view_says_where_it_belongs_and_what_the_caller_may_do(scene: Scene, name: str) -> None:
    caller = CALLERS[name]
    listed = scene.ask(caller, "/experiments?all_users=true&all=true").json()["experiments"]
    for view in listed:
        (entry,) = [
            one for one in scene.entries if (one.user, one.number) == (view["user"], parse_id(view["id"]).number)
        ]
        single = scene.ask(caller, f"/experiments/{view['id']}").json()
        for shown in (view, single, *view["experiments"]):
            assert shown["team_project"] == entry.team_project
            may = caller.scope is not Scope.READ and may_change(caller, entry.user, entry.team_project)
            assert shown["may_change"] is may
            place = f"output://{shown['id']}" if caller.key else f"/{entry.user}/toaster/{entry.number}"
            assert place in shown["output"]


@pytest.mark.parametrize("name", CALLERS)
def test_a_table_of_all_users_has_what_the_caller_sees_once(scene: Scene, name: str) -> None:
    caller = CALLERS[name]
    listed = scene.ask(caller, "/experiments?all_users=true&all=true").json()["experiments"]
    views = {view["id"]: view for entry in listed for view in entry["experiments"] or [entry]}
    path = "/table?all_users=true&column=user&column=set"
    table = scene.ask(caller, path).json()
    assert sorted(line["id"] for line in table["rows"]) == sorted(views)
    for line in table["rows"]:
        view = views[line["id"]]
        assert line["cells"][0] == line["user"] == view["user"]
        assert (line["may_change"], line["team_project"]) == (view["may_change"], view["team_project"])
        assert line["cells"][1] in (None, line["id"].rpartition(".")[0])
    counts = {line["user"]: line["count"] for line in scene.ask(caller, f"{path}&group=user").json()["rows"]}
    assert counts == Counter(view["user"] for view in views.values())
    for project in ("vision", "none"):
        part = scene.ask(caller, f"{path}&team_project={project}").json()["rows"]
        assert {line["id"] for line in part} == {key for key, view in views.items() if view["team_project"] == project}


def test_hints_about_jobs_name_the_user_of_the_experiment(scene: Scene) -> None:
    caller = CALLERS["admin"]
    views = scene.ask(caller, "/experiments?all_users=true&all=true").json()["experiments"]
    single = next(view for view in views if not view["experiments"])
    group = next(view for view in views if view["experiments"])
    refused = scene.ask(caller, f"/comparison?of={single['jobs'][0]['id']}&of={single['id']}")
    assert refused.json()["error"]["hint"] == f"name its experiment: {single['id']}"
    job = group["experiments"][0]["jobs"][0]["name"]
    refused = scene.ask(caller, f"/experiments/{group['id']}.{job}/tfconfig")
    assert refused.json()["error"]["hint"] == f"name one of its experiments: {group['id']}.1"


def test_pages_of_all_users_have_each_experiment_once(scene: Scene) -> None:
    caller = CALLERS["admin"]
    pages = []
    older: dict[str, str] = {}
    for _ in itertools.count():
        query = "&".join(f"{key}={value}" for key, value in older.items())
        page = scene.ask(caller, f"/experiments?all_users=true&all=true&limit=2&{query}").json()["experiments"]
        if not page:
            break
        pages.append([view["id"] for view in page])
        older = {"older_than": pages[-1][0]}
    assert pages == [["ann.1", "ann.2"], ["paul.2", "paul.3"], ["paul.1"]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("older_than=paul.1", "`older_than` is for a list of all users"),
        ("all_users=true&older_than=paul", "'paul' is not an experiment ID"),
        ("all_users=true&older_than=paul.99", "there is no experiment paul.99"),
        ("all_users=true&team_project=%00", "NUL"),
    ],
)
def test_a_wrong_page_of_all_users_is_refused(scene: Scene, query: str, message: str) -> None:
    answer = scene.ask(CALLERS["admin"], f"/experiments?{query}")
    assert answer.status_code in (400, 404, 422)
    assert message in answer.json()["error"]["message"]
