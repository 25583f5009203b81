"""Quotas of a team's server over HTTP: sentence 22 of what such a server must prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import DEADLINE, wait_for
from tests.team.key_scene import KeyScene, open_key_scene

USERS = ("paul", "ann")
WAITING = 3
CONFIG = """
project: quick
train:
  image: python:3.11
  resources: {{cpus: 0.1, mem: 16MiB}}
  priority: {priority}
  run: until [ -e {gate} ]; do sleep 0.02; done
"""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[KeyScene]:
    with open_key_scene(tmp_path) as made:
        for number, user in enumerate(USERS):
            made.add_user(user, uid=2001 + number)
        yield made
        made.application.loop.stop()
        made.application.services.hosts.close()


def submit(scene: KeyScene, user: str, priority: int = 0) -> Any:
    config = CONFIG.format(gate=scene.home / f"gate-{user}", priority=priority)
    body = {"project": "quick", "config": config, "file": "riseml.yml", "executor": "process"}
    return scene.ask("POST", "/experiments", user, body=body)


def read_use(scene: KeyScene, user: str) -> tuple[int, int]:
    """How many experiments of a user run, and how many wait."""
    (quota,) = scene.ask("GET", f"/quotas?user={user}", "admin").json()["quotas"]
    return quota["used"]["running"], quota["used"]["waiting"]


def await_use(scene: KeyScene, user: str, use: tuple[int, int]) -> None:
    wait_for(f"{user} has {use}", lambda: read_use(scene, user) == use, DEADLINE, lambda: str(read_use(scene, user)))


def test_sentence_22_quotas_are_one_clear_403_and_are_never_exceeded_under_concurrent_submits(scene: KeyScene) -> None:
    for user in USERS:
        limits = {"running": 1, "waiting": WAITING, "gpus": 0}
        assert scene.ask("POST", f"/quotas/user/{user}", "admin", body=limits).json()["limits"]["running"] == 1
    with ThreadPoolExecutor(8) as workers:
        answers = list(workers.map(lambda number: (USERS[number % 2], submit(scene, USERS[number % 2])), range(20)))
    assert Counter((user, answer.status_code) for user, answer in answers) == {
        ("paul", 201): WAITING,
        ("ann", 201): WAITING,
        ("paul", 403): 10 - WAITING,
        ("ann", 403): 10 - WAITING,
    }
    error = next(answer for user, answer in answers if user == "paul" and answer.status_code == 403).json()["error"]
    assert (error["kind"], error["message"]) == (
        "Refused",
        "paul may have 3 experiments that wait, and has 3: 1 more are too many",
    )

    scene.application.loop.start()
    for user in USERS:
        await_use(scene, user, (1, WAITING - 1))
    told = wait_for("the quota holds 2", lambda: find_hold(scene, "paul", "2"), DEADLINE)
    assert told == "paul runs 1 of 1 experiments; it can start when 1 ends"
    assert scene.ask("GET", "/experiments/2", "paul").json()["reason"] == "QUOTA"

    (scene.home / "gate-ann").touch()
    seen: set[int] = set()

    def has_ended() -> bool:
        seen.update((read_use(scene, "ann")[0], read_use(scene, "paul")[0]))
        return read_use(scene, "ann") == (0, 0)

    wait_for("all of ann have ended", has_ended, DEADLINE)
    assert seen <= {0, 1}, "no user ever ran more than one"
    assert read_use(scene, "paul") == (1, WAITING - 1), "what another user gives back does not lift a quota"

    assert scene.ask("POST", "/quotas/user/paul", "admin", body={"running": None}).status_code == 200
    await_use(scene, "paul", (WAITING, 0))
    usage = {row["name"]: row["experiments"] for row in scene.ask("GET", "/usage", "admin").json()["rows"]}
    assert usage == {"paul": WAITING, "ann": WAITING}
    assert [row["name"] for row in scene.ask("GET", "/usage", "ann").json()["rows"]] == ["ann"]
    (scene.home / "gate-paul").touch()
    await_use(scene, "paul", (0, 0))


SEARCH = """
project: quick
train:
  image: python:3.11
  resources: {{cpus: 0.1, mem: 16MiB}}
  parameters: {{x: {{range: {{min: 0.0, max: 1.0, step: 0.01}}}}}}
  search: {{method: random, trials: {trials}, metric: loss, goal: minimize}}
  concurrency: {concurrency}
  metrics: {{loss: "loss ([0-9.]+)"}}
  run: "until [ -e {gate} ]; do sleep 0.02; done; echo loss {{{{x}}}}"
"""


def test_sentence_22_trials_of_a_search_obey_quotas_as_experiments_do(scene: KeyScene) -> None:
    assert scene.ask("POST", "/quotas/user/paul", "admin", body={"running": 1, "waiting": 2}).status_code == 200

    def submit_search(concurrency: int) -> Any:
        config = SEARCH.format(gate=scene.home / "gate-paul", trials=4, concurrency=concurrency)
        body = {"project": "quick", "config": config, "file": "riseml.yml", "executor": "process"}
        return scene.ask("POST", "/experiments", "paul", body=body)

    def change(concurrency: int | None = None, *, paused: bool | None = None) -> Any:
        body = {"paused": paused, "concurrency": concurrency, "stop": False}
        return scene.ask("POST", "/experiments/1/search", "paul", body=body)

    too_many = "paul may have 2 experiments that wait, and has {}: {} more are too many"
    refused = submit_search(3)
    assert (refused.status_code, refused.json()["error"]["message"]) == (403, too_many.format(0, 3))
    assert submit_search(1).status_code == 201
    refused = change(4)
    assert (refused.status_code, refused.json()["error"]["message"]) == (403, too_many.format(1, 3))
    assert [change(value).status_code for value in (2, 2)] == [200, 200]
    assert scene.ask("POST", "/quotas/user/paul", "admin", body={"waiting": 1}).status_code == 200
    assert [change(value).status_code for value in (2, 1)] == [200, 200], (
        "a smaller quota refuses nothing that is there"
    )
    assert change(2).status_code == 403
    assert change(paused=True).status_code == change(paused=False).status_code == 200
    assert scene.ask("POST", "/quotas/user/paul", "admin", body={"waiting": 3}).status_code == 200
    assert change(3).status_code == 200

    scene.application.loop.start()
    scene.application.search_loop.start()
    try:
        await_use(scene, "paul", (1, 2))
        wait_for("the quota holds a trial", lambda: find_hold(scene, "paul", "1.2"), DEADLINE)
        (scene.home / "gate-paul").touch()
        await_use(scene, "paul", (0, 0))
        for limits, words in (
            ({"waiting": 2}, too_many.format(0, 3)),
            ({"waiting": None, "log_bytes": 0}, "the logs of"),
        ):
            assert scene.ask("POST", "/quotas/user/paul", "admin", body=limits).status_code == 200
            refused = scene.ask("POST", "/experiments/1/trials", "paul", body={"trials": 2, "environment": {}})
            assert (refused.status_code, words in refused.json()["error"]["message"]) == (403, True), refused.text
    finally:
        scene.application.search_loop.stop()


def find_hold(scene: KeyScene, user: str, identity: str) -> str | None:
    """Return the words of the quota that holds an experiment; None: none does, or the trial is not there yet."""
    told = scene.ask("GET", f"/experiments/{identity}/explain", user)
    if told.status_code == 404:
        return None
    return next((blocker["text"] for blocker in told.json()["blockers"] if blocker["block"] == "quota"), None)


def test_sentence_22_only_an_admin_sets_quotas_and_goes_before_others(scene: KeyScene) -> None:
    assert scene.ask("POST", "/quotas/user/paul", "paul", body={"running": 9}).status_code == 403
    absent = scene.ask("GET", "/quotas?user=nobody", "paul")
    foreign = scene.ask("GET", "/quotas?user=ann", "paul")
    assert (foreign.status_code, foreign.text.replace("ann", "nobody")) == (404, absent.text)
    refused = submit(scene, "paul", priority=5)
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        403,
        "train.priority is 5, and only admins and maintainers of a team project go before others",
    )
    assert submit(scene, "admin", priority=5).status_code == 201
    assert submit(scene, "paul", priority=-5).status_code == 201
    scene.ask("POST", "/projects", "admin", body={"name": "vision"})
    for path, words in (
        ("user/pual", ("there is no user pual", "do you mean paul? `riseml user list` shows them")),
        ("user/nobody-here", ("there is no user nobody-here", "`riseml user list` shows them")),
        ("project/visoin", ("there is no team project visoin", "do you mean vision? `riseml project list` shows them")),
        ("project/paul", ("there is no team project paul", "`riseml project list` shows them")),
    ):
        answer = scene.ask("POST", f"/quotas/{path}", "admin", body={"gpus": 1})
        error = answer.json()["error"]
        assert (answer.status_code, error["message"], error["hint"]) == (404, *words)
    assert scene.ask("POST", "/quotas/project/vision", "admin", body={"gpus": 1}).status_code == 200
    wrong: tuple[dict[str, object], ...] = (
        {"gpus": -1},
        {"gpus": 1.5},
        {"mem_mib": "4GiB"},
        {"weight": 0},
        {"weight": 2},
        {"gpus": 1, "defaults": ["gpus"]},
        {"defaults": ["disks"]},
    )
    for body in wrong:
        assert scene.ask("POST", "/quotas/user/paul", "admin", body=body).status_code in (400, 422), body
    for path in ("/usage?since=2999-01-01T00:00:00Z", "/usage?since=soon", "/usage?by=host"):
        assert scene.ask("GET", path, "paul").status_code in (400, 422), path
