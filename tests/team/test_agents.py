"""The tools of a coding agent at a team's server: they do what the user's key may do."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.agent_hands import open_hands
from tests.support.rig import single
from tests.team.key_scene import open_key_scene


def test_what_the_key_may_not_do_is_refused_in_plain_words(tmp_path: Path) -> None:
    home = tmp_path / "team"
    home.mkdir()
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "riseml.yml").write_text(single("true"))
    with open_key_scene(home) as scene:
        scene.add_user("paul", uid=2001)
        keys = {
            scope: scene.ask("POST", "/keys", "paul", body={"scope": scope}).json()["secret"]
            for scope in ("read", "run")
        }
        environ = {**os.environ, "RISEML_HOME": str(tmp_path / "home")}
        with open_hands(folder, {**environ, "RISEML_API_KEY": keys["read"]}, "--server", scene.url) as hands:
            assert hands.call("status")["experiments"] == []
            error = hands.refuse("plan")
            assert error["cause"] == "the key has the scope read, and this needs run"
            assert (error["code"], "riseml key create" in error["fix"]) == ("Refused", True)
            assert keys["read"] not in hands.said
        other = scene.add_user("ann", uid=2002)
        with open_hands(folder, {**environ, "RISEML_API_KEY": keys["run"]}, "--server", scene.url) as hands:
            started = hands.call("submit", token=hands.call("plan")["token"])["experiment"]
            assert started["user"] == "paul"
        with open_hands(folder, {**environ, "RISEML_API_KEY": other}, "--stop-any", "--server", scene.url) as hands:
            assert hands.refuse("stop", experiment=f"paul.{started['id']}")["code"] == "NotFound"
