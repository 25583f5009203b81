"""Secrets on a team's server: each caller sees and uses their own and those of their team projects, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import NotFound
from tests.support.rig import single
from tests.team.key_scene import KeyScene, open_key_scene

MINE = "/secrets/hf"
SHARED = "/secrets/hf?project=vision"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyScene]:
    """Max maintains the project vision, Mona is a member and Vera looks; Otto maintains another one; Olaf has none."""
    folder = tmp_path_factory.mktemp("keys")
    with open_key_scene(tmp_path_factory.mktemp("team"), f"secrets_key: {folder}/secrets.key\n") as made:
        for number, name in enumerate(("max", "mona", "vera", "otto", "olaf")):
            made.add_user(name, uid=2001 + number)
        for project, members in {
            "vision": {"max": "maintainer", "mona": "member", "vera": "viewer"},
            "speech": {"otto": "maintainer"},
        }.items():
            assert made.ask("POST", "/projects", "admin", body={"name": project}).is_success
            for name, role in members.items():
                path = f"/projects/{project}/members/{name}"
                assert made.ask("POST", path, "admin", body={"role": role}).is_success
        assert made.ask("PUT", SHARED, "max", body={"value": "of the project"}).is_success
        assert made.ask("PUT", "/secrets/hf?project=speech", "otto", body={"value": "of speech"}).is_success
        assert made.ask("PUT", "/secrets/own", "mona", body={"value": "of mona"}).is_success
        login = {"login": "lab", "password": "of the registry"}
        assert made.ask("PUT", "/registries/registry.lab?project=vision", "max", body=login).is_success
        assert (folder / "secrets.key").stat().st_mode & 0o777 == 0o600
        assert not (made.home / "variables.key").exists()
        yield made


def _list(scene: KeyScene, user: str | None = None, key: str | None = None) -> set[tuple[str, str]]:
    secrets = scene.ask("GET", "/secrets", user, key=key).json()["secrets"]
    registries = scene.ask("GET", "/registries", user, key=key).json()["registries"]
    return {(row["name"], row["owner"]) for row in secrets} | {(row["host"], row["owner"]) for row in registries}


def _check(scene: KeyScene, secret: str, project: str, user: str | None = None, key: str | None = None) -> str:
    """Let the server check a submission that names a secret; return its message, or nothing."""
    config = json.loads(single("true", env={"T": {"secret": secret}})) | {"project": project}
    request = {"config": json.dumps(config), "project": project, "file": "riseml.yml", "executor": "process"}
    answer = scene.ask("POST", "/experiments/check", user, key=key, body=request)
    return "" if answer.status_code == 204 else str(answer.json()["error"]["message"])


def test_sentence_20_a_caller_lists_their_own_secrets_and_those_of_their_projects(scene: KeyScene) -> None:
    shared = {("hf", "vision"), ("registry.lab", "vision")}
    assert _list(scene, "max") == shared
    assert _list(scene, "mona") == {*shared, ("own", "mona")}
    assert _list(scene, "otto") == {("hf", "speech")}
    assert _list(scene, "vera") == _list(scene, "olaf") == set()


def test_sentence_20_a_key_of_a_project_sees_and_uses_those_of_this_project_alone(scene: KeyScene) -> None:
    key = scene.ask("POST", "/keys", "mona", body={"name": "ci", "project": "vision"}).json()["secret"]
    assert _list(scene, key=key) == {("hf", "vision"), ("registry.lab", "vision")}
    assert _check(scene, "hf", "vision", key=key) == ""
    assert _check(scene, "own", "vision", key=key) == (
        "the secret own of the project vision is not set, and a key of the project uses no other"
    )
    assert _check(scene, "own", "vision", "mona") == ""
    answer = scene.ask("PUT", "/secrets/own", key=key, body={"value": "another"})
    assert (answer.status_code, "bound to the project vision" in answer.text) == (403, True)


SEARCHED = {
    "parameters": {"lr": {"uniform": {"min": 1, "max": 2}}},
    "search": {"method": "random", "trials": 2, "metric": "x", "goal": "minimize"},
}


@pytest.mark.parametrize("keys", [{}, SEARCHED], ids=["a run", "a search"])
def test_sentence_20_a_run_of_a_key_of_a_project_never_gets_a_secret_of_its_user(
    scene: KeyScene, keys: dict[str, object]
) -> None:
    """Also when the secret of the project is removed after the submission."""
    key = scene.ask("POST", "/keys", "mona", body={"name": "ci", "project": "vision"}).json()["secret"]
    both = ("/secrets/both?project=vision", "max"), ("/secrets/both", "mona")
    for path, user in both:
        assert scene.ask("PUT", path, user, body={"value": f"secret of {user}"}).is_success
    config = json.loads(single("true", env={"T": {"secret": "both"}}, **keys)) | {"project": "vision"}
    request = {"config": json.dumps(config), "project": "vision", "file": "riseml.yml", "executor": "process"}
    services = scene.application.services
    for given in (key, None):
        answer = scene.ask("POST", "/experiments", None if given else "mona", key=given, body=request)
        assert answer.status_code == 201, answer.text
        run = max(services.stores.experiments.load_world().experiments, key=lambda experiment: experiment.id)
        assert dict(services.loops.secrets.open_run(run).experiment.environment)["T"] == "secret of max"
        assert scene.ask("DELETE", both[0][0], "max").is_success
        if given:
            with pytest.raises(NotFound, match="the secret both of the project vision is not set"):
                services.loops.secrets.open_run(run)
        else:
            assert dict(services.loops.secrets.open_run(run).experiment.environment)["T"] == "secret of mona"
        assert scene.ask("PUT", both[0][0], "max", body={"value": "secret of max"}).is_success
    for path, user in both:
        assert scene.ask("DELETE", path, user).is_success


@pytest.mark.parametrize("user", ["otto", "olaf", "vera"])
def test_sentence_20_the_name_of_a_project_gives_nobody_its_secrets(user: str, scene: KeyScene) -> None:
    absent = _check(scene, "hf", "nowhere", "olaf")
    assert absent == "the secret hf is not set"
    if user != "vera":
        assert _check(scene, "hf", "vision", user) == absent
    for method, path in (("PUT", SHARED), ("DELETE", SHARED), ("DELETE", "/registries/registry.lab?project=vision")):
        body = {"value": "planted"} if method == "PUT" else None
        hidden = scene.ask(method, path, user, body=body)
        missing = scene.ask(method, path.replace("vision", "nowhere"), user, body=body)
        assert hidden.status_code == missing.status_code
        assert hidden.text.replace("vision", "nowhere") == missing.text
    assert _list(scene, "max") == {("hf", "vision"), ("registry.lab", "vision")}


def test_sentence_20_a_maintainer_sets_what_members_use(scene: KeyScene) -> None:
    assert _check(scene, "hf", "vision", "mona") == ""
    for method, body in (("PUT", {"value": "of mona"}), ("DELETE", None)):
        answer = scene.ask(method, SHARED, "mona", body=body)
        assert (answer.status_code, "not a maintainer of vision" in answer.text) == (403, True)
    assert scene.ask("DELETE", "/secrets/hf?project=speech", "max").status_code == 404


def test_a_team_without_a_file_for_the_key_keeps_no_secrets(tmp_path: Path) -> None:
    with open_key_scene(tmp_path) as scene:
        requests = {
            "/secrets/hf": {"value": "a value"},
            "/registries/registry.lab": {"login": "me", "password": "a word"},
        }
        for path, body in requests.items():
            error = scene.ask("PUT", path, "admin", body=body).json()["error"]
            assert error["message"] == "this server keeps no secrets: its server.yml names no file for their key"
            assert "`secrets_key: /etc/riseml/secrets.key`" in error["hint"]
