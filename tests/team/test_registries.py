"""Images of private registries are pulled with the credential of the user or project, which no engine keeps."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from uuid import uuid4

import docker
import pytest

from tests.support.registry import private_registry, write_dockerfile
from tests.support.rig import Rig, single

LOGIN = "paul"
PASSWORD = "p4ss-of-the-registry"


def _push(engine: str, repository: str) -> str:
    """Push a small image, and remove it from the engine; return its name."""
    api = docker.APIClient(engine)
    name = f"{repository}/small"
    for _ in api.build(fileobj=write_dockerfile(), tag=f"{name}:1", rm=True, forcerm=True):
        continue
    auth = {"username": LOGIN, "password": PASSWORD}
    answer = api.push(name, tag="1", auth_config=auth, stream=True, decode=True)
    assert not [line for line in answer if "error" in line]
    api.remove_image(f"{name}:1", force=True)
    return f"{name}:1"


@pytest.mark.parametrize("kind", ["basic", "bearer"])
def test_an_image_is_pulled_with_the_credential_of_its_host(kind: str, docker_rig: Rig, tmp_path: Path) -> None:
    rig = docker_rig
    engine = str(rig.engine)
    with private_registry(tmp_path, kind, LOGIN, PASSWORD) as address:
        host = address.partition("/")[0]
        image = _push(engine, f"{address}/{uuid4().hex[:8]}")
        try:
            rig.submit(single("true", image=image))
            refused = rig.wait_closed("1")
            assert refused["state"] == "FAILED"
            assert f"riseml registry login {host}" in json.dumps(refused)
            with rig.client() as client:
                wrong = client.put(f"/v1/registries/{host}", json={"login": LOGIN, "password": "wrong one"})
                right = {"login": LOGIN, "password": PASSWORD}
                project = client.put(f"/v1/registries/{host}", json=right, params={"project": "toaster"})
                assert (wrong.status_code, project.status_code) == (200, 200)
                rig.submit(single("true", image=image))
                assert rig.wait_closed("2")["state"] == "FAILED", "the user's own comes first"
                assert client.delete(f"/v1/registries/{host}").status_code == 200
            rig.submit(single("true", image=image), pull=True)
            assert rig.wait_closed("3")["state"] == "FINISHED"
            (shown,) = rig.get("/v1/registries")["registries"]
            assert (shown["host"], shown["login"], shown["owner"]) == (host, LOGIN, "toaster")
            assert shown["used_at"] is not None
            assert PASSWORD not in json.dumps([shown, rig.experiment("3"), rig.lines("3", follow=False)])
            assert not any(PASSWORD.encode() in path.read_bytes() for path in rig.home.rglob("*") if path.is_file())
        finally:
            docker.APIClient(engine).remove_image(image, force=True)


def test_a_single_user_pulls_with_the_login_of_docker(engine_url: str, tmp_path: Path) -> None:
    """A file of Docker's own configuration, which riseml reads and never writes."""
    config = tmp_path / "docker" / "config.json"
    config.parent.mkdir()
    with private_registry(tmp_path, "basic", LOGIN, PASSWORD) as address:
        host = address.partition("/")[0]
        image = _push(engine_url, f"{address}/{uuid4().hex[:8]}")
        content = json.dumps({"auths": {host: {"auth": base64.b64encode(f"{LOGIN}:{PASSWORD}".encode()).decode()}}})
        config.write_text(content)
        with Rig(tmp_path / "home", engine_url, DOCKER_CONFIG=str(config.parent)) as rig:
            try:
                rig.submit(single("true", image=image))
                assert rig.wait_closed("1")["state"] == "FINISHED"
            finally:
                docker.APIClient(engine_url).remove_image(image, force=True)
        assert config.read_text() == content
        assert [path.name for path in config.parent.iterdir()] == ["config.json"]


def test_an_image_that_a_host_has_is_usable_for_those_alone_whom_its_registry_lets(
    docker_rig: Rig, tmp_path: Path
) -> None:
    """On a team's server, the registry is asked with the credential of the user, whatever the host has."""
    rig = docker_rig
    with private_registry(tmp_path, "basic", LOGIN, PASSWORD) as address:
        host = address.partition("/")[0]
        image = _push(str(rig.engine), f"{address}/{uuid4().hex[:8]}")
        try:
            with rig.client() as client:
                assert client.put(f"/v1/registries/{host}", json={"login": LOGIN, "password": PASSWORD}).is_success
            rig.submit(single("true", image=image))
            assert rig.wait_closed("1")["state"] == "FINISHED", "the host has the image now"
            (rig.home / "server.yml").write_text("listen: 127.0.0.1:1\n")
            rig.submit(single("true", image=image))
            assert rig.wait_closed("2")["state"] == "FINISHED"
            with rig.client() as client:
                assert client.delete(f"/v1/registries/{host}").is_success
                other = {"login": LOGIN, "password": PASSWORD}
                assert client.put(f"/v1/registries/{host}", json=other, params={"project": "another"}).is_success
            answer = rig.post("/v1/experiments", rig.submission(single("true", image=image)))
            assert answer.status_code == 403, answer.text
            assert answer.json()["error"]["message"].startswith(f"you may not use the image {image}")
            assert f"riseml registry login {host}" in answer.json()["error"]["hint"]
        finally:
            docker.APIClient(str(rig.engine)).remove_image(image, force=True)
