"""Sentences 9 to 12 of a server for a team: each route is asked as each role, for own, shared and foreign things.

The requests go through the API in this process, behind a gate that says who calls; the store is SQLite. What a route
about the server or the caller's own things would do is not done: the check before it is asked.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIWebSocketRoute
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import riseml.server
from riseml.base.errors import Refused, RisemlError, Unauthenticated
from riseml.base.names import JobName
from riseml.base.roles import Role
from riseml.base.roles import Scope as KeyScope
from riseml.base.states import State
from riseml.control.observation import Observation
from riseml.control.permissions import may_change, may_see, sees_everything
from riseml.model import Caller, Frame, JobKey, Owner
from riseml.planning.plan import first_jobs
from riseml.server.api.access_table import ACCESS, STREAM, Access, ObjectKind
from riseml.server.api.routes.late_route import LateRoute
from riseml.server.app import Application
from riseml.server.gate.key_gate import KeyGate
from riseml.server.gate.request_caller import set_caller
from riseml.store.insertion import NewExperiments
from riseml.store.reports import SavedReport
from tests.support.callers import call_as
from tests.unit.control.simulation import make_plan
from tests.unit.server.stored_experiments import NOW, open_application

PROJECT = "shared"
OWN, SHARED, FOREIGN, ABSENT = "9", "paul.2", "paul.1", "paul.77"


def make_caller(name: str, role: Role, in_project: Role | None, scope: KeyScope = KeyScope.ADMIN) -> Caller:
    projects = () if in_project is None else ((PROJECT, in_project),)
    return Caller(Owner(name, 2001, 2001), role, scope, projects, key="k1", address="10.0.0.1")


CALLERS = {
    "outsider": make_caller("olaf", Role.MEMBER, None),
    "viewer": make_caller("vera", Role.VIEWER, Role.VIEWER),
    "viewer of the project": make_caller("ida", Role.MEMBER, Role.VIEWER),
    "member": make_caller("mona", Role.MEMBER, Role.MEMBER),
    "maintainer": make_caller("max", Role.MEMBER, Role.MAINTAINER),
    "admin": make_caller("ada", Role.ADMIN, None),
    "key that reads": make_caller("mona", Role.MEMBER, Role.MAINTAINER, KeyScope.READ),
    "key that runs": make_caller("ada", Role.ADMIN, None, KeyScope.RUN),
}
PAUL = Owner("paul", 2000, 2000)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Paul has experiment 1 for himself and 2 in a project that he shares; each caller has experiment 9."""
    with open_application(tmp_path_factory.mktemp("team")) as application:
        application.services.loops.passes.observation = Observation(NOW, {})
        _add(application, PAUL, None)
        _add(application, PAUL, PROJECT)
        for owner in {caller.owner for caller in CALLERS.values()}:
            for _ in range(9):
                _add(application, owner, None)
        yield application


def _add(application: Application, owner: Owner, team_project: str | None) -> None:
    plan = make_plan("train")
    new = NewExperiments(owner, "p", "", "", ((plan, first_jobs(plan)),), team_project=team_project)
    stores = application.services.stores
    ((detail,), _) = stores.experiments.add_experiments(new, NOW)
    stores.logs.append_frames(
        JobKey(detail.experiment.id, JobName("train"), 1), [Frame("2026-08-31T07:23:46Z", 1, b"a line\n")]
    )


def ask(
    application: Application, caller: Caller | None, method: str, path: str, query: str = "", content: bytes = b"{}"
) -> tuple[int, bytes]:
    """The status and the beginning of the body of an answer."""
    sent: list[Message] = []
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"riseml"), (b"content-type", b"application/json")],
    }

    bodies = [content]
    begun = asyncio.Event()

    async def receive() -> Message:
        if bodies:
            return {"type": "http.request", "body": bodies.pop()}
        await begun.wait()  # the client leaves a stream after its first piece
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if message.get("body"):
            begun.set()

    api = application.api if caller is None else call_as(application.api, caller)

    async def run() -> None:
        await api(scope, receive, send)

    asyncio.run(run())
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def check(application: Application, caller: Caller, method: str, path: str) -> RisemlError | None:
    """The refusal of the check before a route; None: the route may do what it does."""
    for route in application.api.router.routes:
        scope: Scope = {"type": "http", "method": method, "path": path, "headers": []}
        if isinstance(route, LateRoute) and route.matches(scope)[0] is Match.FULL:
            guard = route.guard
            assert guard is not None
            set_caller(scope, caller)

            try:
                asyncio.run(guard({**scope, **route.matches(scope)[1]}))
            except RisemlError as error:
                return error
            return None
    raise AssertionError(f"{method} {path} leads to no route")


def fill(path: str, name: str = OWN) -> str:
    """The address of a route for an experiment."""
    filled = path.replace("{digest}", "0" * 64).replace("{port}", "22")
    return filled.replace("{name}", name if "/experiments/" in path else "gpu1")


def expect(caller: Caller, access: Access, name: str) -> int:
    """What the table and the rules of projects say about an experiment: 200 stands for whatever the route answers."""
    if caller.scope < access.scope:
        return 403
    project = dict(caller.projects).get(PROJECT) if name == SHARED else None
    sees = name == OWN or caller.role is Role.ADMIN or project is not None
    if name == ABSENT or not sees:
        return 404
    changes = name == OWN or caller.role is Role.ADMIN or project is Role.MAINTAINER
    return 200 if access.least is Role.VIEWER or (changes and caller.role >= access.least) else 403


ABOUT_EXPERIMENTS = [
    (method, path)
    for (method, path), access in ACCESS.items()
    if access.kind is ObjectKind.EXPERIMENT and method != STREAM
]


@pytest.mark.parametrize("role", CALLERS)
def test_sentence_10_each_route_answers_each_role_as_the_table_says(role: str, team: Application) -> None:
    caller = CALLERS[role]
    wrong: list[tuple[object, ...]] = []
    for (method, path), access in ACCESS.items():
        if access.kind is ObjectKind.EXPERIMENT or method == STREAM:
            continue
        refusal = check(team, caller, method, fill(path))
        allowed = caller.scope >= access.scope and caller.role >= access.least
        if (refusal is None) is not allowed or not isinstance(refusal, Refused | None):
            wrong.append((method, path, refusal))
    for method, path in ABOUT_EXPERIMENTS:
        access = ACCESS[method, path]
        for name in (OWN, SHARED, FOREIGN, ABSENT):
            expected = expect(caller, access, name)
            if access.least is Role.VIEWER:
                status, body = ask(team, caller, method, fill(path, name), "metric=loss&text=x&path=a/1.png")
                absent = status == 404 and b"there is no experiment" in body
                refused = 404 if absent else 403 if b"the key has the scope" in body else 200
            elif sees_everything(caller) and name == ABSENT and expected == 404:
                continue  # the route itself finds that it is absent
            else:
                refusal = check(team, caller, method, fill(path, name))
                refused = 200 if refusal is None else refusal.http_status
            if refused != expected:
                wrong.append((method, path, name, expected, refused))
    assert wrong == []


@pytest.mark.parametrize(
    ("role", "name", "of_variables", "of_stacks"),
    [("maintainer", SHARED, 403, 409), ("admin", FOREIGN, 403, 409), ("member", OWN, 409, 409)],
)
def test_the_variables_of_a_job_are_for_its_owner_alone(
    role: str, name: str, of_variables: int, of_stacks: int, team: Application
) -> None:
    """Nothing runs here: so what is allowed answers 409."""
    path = f"/v1/experiments/{name}/stacks"
    status, body = ask(team, CALLERS[role], "POST", path, content=b'{"variables": true}')
    assert (status, b"are for paul alone" in body) == (of_variables, of_variables == 403)
    assert ask(team, CALLERS[role], "POST", path)[0] == of_stacks


@pytest.mark.parametrize("role", ["outsider", "viewer", "member", "key that reads"])
def test_sentence_11_what_is_hidden_answers_as_what_is_absent(role: str, team: Application) -> None:
    """The answers differ in the ID alone that the client itself has sent."""
    caller = CALLERS[role]
    for method, path in ABOUT_EXPERIMENTS:
        answers = [
            ask(team, caller, method, fill(path, name), "metric=loss&text=x&path=a/1.png") for name in (FOREIGN, ABSENT)
        ]
        assert answers[0][1].replace(FOREIGN.encode(), b"ID") == answers[1][1].replace(ABSENT.encode(), b"ID"), path
        assert answers[0][0] == answers[1][0]
    for path, query in (
        ("/v1/comparison", "of=9&of={}"),
        ("/v1/results", "of={}"),
        ("/v1/results/groups", "of={}"),
        ("/v1/results/curves", "of={}&metric=loss&by=tag"),
        ("/v1/files", "root=output&of={}"),
        ("/v1/files/content", "root=output&of={}&path=x"),
        ("/v1/experiments", "user=paul&before=2"),
    ):
        hidden = ask(team, caller, "GET", path, query.format(FOREIGN))
        absent = ask(team, caller, "GET", path, query.format(ABSENT))
        assert hidden[1].replace(FOREIGN.encode(), b"ID") == absent[1].replace(ABSENT.encode(), b"ID"), path
        assert hidden[0] == absent[0]


def test_sentence_11_what_is_hidden_takes_as_long_as_what_is_absent(team: Application) -> None:
    seconds: dict[str, list[float]] = {FOREIGN: [], ABSENT: []}
    for _ in range(60):
        for name, taken in seconds.items():
            began = time.perf_counter()
            assert ask(team, CALLERS["outsider"], "GET", f"/v1/experiments/{name}")[0] == 404
            taken.append(time.perf_counter() - began)
    hidden, absent = (statistics.median(taken) for taken in seconds.values())
    assert 0.5 < hidden / absent < 2


def test_sentence_11_neighbours_in_the_queue_have_no_name(team: Application) -> None:
    texts = []
    for path, query in (
        ("/v1/experiments/9/explain", ""),
        ("/v1/pool/queue", ""),
        ("/v1/experiments", "all_users=true&all=true"),
        ("/v1/experiments", "user=paul&all=true"),
        ("/v1/kept", ""),
    ):
        status, body = ask(team, CALLERS["outsider"], "GET", path, query)
        assert status == 200
        texts.append(body.decode())
    assert not re.search(r"paul|mona|ada\b", "".join(texts))
    listed = json.loads(ask(team, CALLERS["member"], "GET", "/v1/experiments", "user=paul&all=true")[1])
    assert [(view["user"], view["id"]) for view in listed["experiments"]] == [("paul", "paul.2")]
    listed = json.loads(ask(team, CALLERS["admin"], "GET", "/v1/experiments", "all_users=true&all=true")[1])
    assert {view["user"] for view in listed["experiments"]} >= {"paul", "mona", "ada"}


def test_sentence_12_the_server_and_its_pool_are_for_admins(team: Application) -> None:
    places = ("/v1/server/", "/v1/pool/", "/v1/leftovers", "/v1/web")
    changing = {
        (method, path) for method, path in ACCESS if path.startswith(places) and (method != "GET" or "keys" in path)
    }
    assert len(changing) >= 12
    for address in (*changing, ("GET", "/v1/leftovers"), ("GET", "/metrics")):
        assert ACCESS[address].least is Role.ADMIN, address


def test_sentence_3_nothing_but_the_health_check_answers_without_a_key(team: Application) -> None:
    class NoKeys:
        """Knows no key."""

        def find_caller(self, token: str, address: str) -> Caller:
            raise Unauthenticated("the server does not take this key")

    async def knock(kind: str, method: str, path: str, header: str) -> Message:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request" if kind == "http" else "websocket.connect", "body": b""}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {"type": kind, "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        headers = [(b"host", b"gpu1"), *([(b"authorization", header.encode())] if header else [])]
        await KeyGate(team.api, NoKeys())({**scope, "headers": headers, "client": ("10.0.0.1", 4711)}, receive, send)
        return sent[0]

    addresses = [(method.upper(), path) for path, methods in team.api.openapi()["paths"].items() for method in methods]
    streams = [route.path for route in team.api.router.routes if isinstance(route, APIWebSocketRoute)]
    assert len(addresses) + len(streams) == len(ACCESS)
    for header in ("", "Bearer wrong"):
        for method, path in (*addresses, ("GET", "/openapi.json"), ("GET", "/apps/9/"), ("GET", "/nothing")):
            answer = asyncio.run(knock("http", method, fill(path), header))
            assert answer["status"] == 401, (method, path)
        for path in streams:
            assert asyncio.run(knock("websocket", "GET", fill(path), header))["type"] == "websocket.close"
    assert asyncio.run(knock("http", "GET", "/health", ""))["status"] == 200
    assert ask(team, None, "GET", "/v1/server")[0] == 401, "also without a gate"


def test_sentence_9_the_server_has_no_constant_owner() -> None:
    """One module makes the server's user, for the gates; nothing in the API keeps a caller or the owner of anything."""
    makers, keepers = [], []
    root = Path(riseml.server.__file__).parent
    for file in sorted(root.rglob("*.py")):
        tree = ast.parse(file.read_text())
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}
        if names & {"Owner", "getuser", "find_server_user"}:
            makers.append(str(file.relative_to(root)))
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and re.search(r"\b(Owner|Caller)\b", ast.unparse(node.annotation)):
                keepers.append(str(file.relative_to(root)))
    assert "api" not in {maker.split("/")[0] for maker in (*makers, *keepers)}
    assert [maker for maker in makers if not maker.startswith("gate/")] == ["app.py"]
    assert [keeper for keeper in keepers if not keeper.startswith("gate/")] == []


def test_the_check_of_a_request_takes_at_most_a_third_of_a_millisecond(team: Application) -> None:
    """In process, the median: the gate finds the caller, and the check of the route passes them."""
    route = next(
        route
        for route in team.api.router.routes
        if isinstance(route, LateRoute) and route.address == (("GET",), "/v1/server")
    )
    assert route.guard is not None
    guard, caller = route.guard, CALLERS["member"]

    async def measure() -> list[float]:
        seconds = []
        for _ in range(500):
            began = time.perf_counter()
            scope: Scope = {"type": "http", "method": "GET", "path": "/v1/server"}
            set_caller(scope, caller)
            await guard(scope)
            seconds.append(time.perf_counter() - began)
        return seconds

    assert statistics.median(asyncio.run(measure())) < 0.0003


@pytest.mark.parametrize("state", [State.CREATED])
def test_a_kill_of_a_maintainer_ends_the_experiment_of_another_member(state: State, team: Application) -> None:
    assert ask(team, CALLERS["member"], "POST", "/v1/experiments/paul.2/kill")[0] == 403
    status, body = ask(team, CALLERS["maintainer"], "POST", "/v1/experiments/paul.2/kill")
    assert (status, json.loads(body)["user"]) == (200, "paul")
    (detail,) = team.services.stores.experiments.find_by_number("paul", 2)
    assert detail.experiment.wanted.value == "KILL"
    assert detail.experiment.state is state


def open_stream(application: Application, caller: Caller, path: str) -> list[Message]:
    """What a stream sends until it closes, or for its first message."""
    sent: list[Message] = []
    received: list[Message] = [{"type": "websocket.connect"}]

    async def receive() -> Message:
        return received.pop() if received else {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": []}
    asyncio.run(_call(call_as(application.api, caller), scope, receive, send))
    return sent


async def _call(api: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await api(scope, receive, send)


@pytest.mark.parametrize("kind", ["ports/22", "presence"])
def test_sentence_10_and_11_streams_answer_as_the_table_says(kind: str, team: Application) -> None:
    def ask_for(role: str, name: str) -> bytes:
        messages = open_stream(team, CALLERS[role], f"/v1/experiments/{name}/{kind}")
        return b"".join(message.get("bytes") or b"" for message in messages).replace(name.encode(), b"ID")

    reads = open_stream(team, CALLERS["key that reads"], f"/v1/experiments/{OWN}/{kind}")
    assert (reads == [{"type": "websocket.close", "code": 1008}]) is (kind != "presence")
    for role in ("outsider", "viewer", "member", "maintainer"):
        assert ask_for(role, FOREIGN) == ask_for(role, ABSENT), role
        assert b"there is no experiment" in ask_for(role, FOREIGN)
    assert b"there is no experiment" in ask_for("outsider", SHARED)
    for role in ("viewer", "member"):
        assert (b"not yours to change" in ask_for(role, SHARED)) is (kind != "presence")
    for role in ("maintainer", "admin"):
        assert b"not yours to change" not in ask_for(role, SHARED)
        assert b"there is no experiment" not in ask_for(role, SHARED)


def test_sentence_6_a_key_that_is_bound_to_a_project_sees_nothing_else(team: Application) -> None:
    bound = replace(CALLERS["member"], project=PROJECT)
    assert ask(team, bound, "GET", f"/v1/experiments/{OWN}")[0] == 404
    assert ask(team, bound, "GET", f"/v1/experiments/{SHARED}")[0] == 200
    for path, key in (
        ("/v1/experiments", "experiments"),
        ("/v1/names", "names"),
        ("/v1/metrics/names", "names"),
        ("/v1/samples", "samples"),
        ("/v1/kept", "kept"),
        ("/v1/outputs", "outputs"),
    ):
        assert json.loads(ask(team, bound, "GET", path)[1])[key] == [], path
    assert json.loads(ask(team, bound, "GET", "/v1/metrics/values", "metric=loss")[1])["values"] == {}
    everything = json.loads(ask(team, bound, "GET", "/v1/experiments", "all_users=true&all=true")[1])
    assert [(view["user"], view["id"]) for view in everything["experiments"]] == [("paul", "paul.2")]
    assert ask(team, replace(CALLERS["admin"], project=PROJECT), "GET", f"/v1/experiments/{FOREIGN}")[0] == 404


@pytest.mark.parametrize("role", CALLERS)
def test_a_report_shows_each_caller_the_runs_that_they_see(role: str, team: Application) -> None:
    """Paul has a report for himself, and one in the project; both are about his own run, the shared one and an absent
    one. A caller gets the report and the runs that the rule of `may_see` gives, and of the others a number alone.
    """
    caller = CALLERS[role]
    store = team.services.stores.reports
    author = make_caller("paul", Role.MEMBER, Role.MEMBER)
    text = "```chart\nruns: [1, 2, 77]\nmetric: loss\n```\n"
    places = {"own": None, "shared": PROJECT}
    for name, project in places.items():
        known = {report.name: report.version for report in store.list_reports(author)}
        report = SavedReport("paul", name, project or "", project, "T", text, known.get(name, 0), NOW)
        store.save(author, report)
        status, body = ask(team, caller, "GET", f"/v1/reports/paul.{name}")
        if not may_see(caller, "paul", project):
            absent = ask(team, caller, "GET", f"/v1/reports/paul.{'x' * len(name)}")
            assert (status, body.replace(name.encode(), b"x" * len(name))) == absent
            continue
        (block,) = json.loads(body)["blocks"]
        seen = [f"paul.{number}" for number, shared in ((1, None), (2, PROJECT)) if may_see(caller, "paul", shared)]
        assert (status, block["runs"], block["absent"]) == (200, seen, 3 - len(seen))
        assert json.loads(body)["can_change"] is may_change(caller, "paul", project)
    listed = [report["id"] for report in json.loads(ask(team, caller, "GET", "/v1/reports")[1])["reports"]]
    assert listed == [f"paul.{name}" for name, project in places.items() if may_see(caller, "paul", project)]
