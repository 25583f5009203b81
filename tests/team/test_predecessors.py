"""Runs that wait for runs of others, and read their outputs, on a team's server: nothing that is hidden shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.team.key_scene import KeyScene, open_key_scene

CONFIG = """
project: quick
train:
  image: python:3.11
  resources: {cpus: 0.1, mem: 16MiB}
"""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[KeyScene]:
    with open_key_scene(tmp_path) as made:
        for number, user in enumerate(("paul", "ann")):
            made.add_user(user, uid=2001 + number)
        yield made
        made.application.services.hosts.close()


def submit(scene: KeyScene, user: str, *after: str, route: str = "/experiments", **keys: Any) -> Any:
    more = "".join(f"  {key}: {value}\n" for key, value in {"run": "true", **keys}.items())
    body = {"project": "quick", "config": CONFIG + more, "file": "riseml.yml", "executor": "process"}
    return scene.ask("POST", route, user, body=body | ({"after": list(after)} if after else {}))


@pytest.mark.parametrize("route", ["/experiments", "/experiments/check", "/plans"])
def test_what_a_user_does_not_see_is_as_what_is_not_there(scene: KeyScene, route: str) -> None:
    assert submit(scene, "paul").json()["id"] == "1"
    for name in ("paul.1", "paul.99", "nobody.1"):
        for answer in (
            submit(scene, "ann", name, route=route),
            submit(scene, "ann", f"{name}:any", route=route),
            submit(scene, "ann", route=route, inputs=f"{{model: 'output://{name}/model'}}"),
        ):
            assert answer.status_code == 404
            assert answer.content.replace(name.encode(), b"ID") == (
                b'{"error":{"kind":"NotFound","message":"there is no experiment ID",'
                b'"hint":"`riseml status -a` lists all of yours","exit_code":3}}'
            )
    assert submit(scene, "admin", "paul.1", route=route).status_code in (200, 201, 204), "an admin sees it"


def test_wrong_requests_are_refused_in_words_and_others_name_what_is_waited_for(scene: KeyScene) -> None:
    assert submit(scene, "paul").status_code == 201
    for text, sentence in (
        ("1.train", "1.train names a job"),
        ("1:always", "'1:always' is not an experiment ID"),
        ("first", "'first' is not an experiment ID"),
    ):
        answer = submit(scene, "paul", text)
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, sentence)
    waiting = submit(scene, "paul", "1", "1:any").json()
    assert (waiting["id"], waiting["after"]) == ("2", ["1:any"]), "the last word about one experiment counts"
    reading = submit(scene, "paul", inputs="{model: 'output://1/model'}").json()
    assert reading["after"] == ["1"]
    assert submit(scene, "admin", "paul.1").json()["after"] == ["paul.1"]
    assert scene.ask("POST", "/quotas/user/paul", "admin", body={"waiting": 3}).status_code == 200
    assert submit(scene, "paul", "1").status_code == 403, "what waits for others counts as waiting"
