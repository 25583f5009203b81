"""The image of a team's server, built as its Dockerfile says and asked over TLS from outside its container."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import docker
import httpx
import pytest
from docker.errors import ImageNotFound, NotFound
from docker.models.containers import Container
from uv import find_uv_bin

from riseml.base.errors import Unreachable
from riseml.client.server_client import Address, Client
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE, wait_for

TREE = Path(__file__).parents[3]
HOME = "/var/lib/riseml"
NAME = "riseml-test-server-image"
PYTHON = f"""
FROM {BASE}
COPY packages /usr/local/lib/python3.11/dist-packages
ENV PIP_NO_INDEX=1 PIP_NO_BUILD_ISOLATION=0
"""
"""A base image with the locked packages, so that the build asks no index: pip finds them installed."""


@pytest.fixture
def image(engine_url: str, tmp_path: Path) -> Iterator[str]:
    """The image of the server."""
    packages = tmp_path / "packages"
    lock = ("-r", str(TREE / "requirements.lock"), "hatchling")
    command = [find_uv_bin(), "pip", "install", "-q", "--python", sys.executable, "--target", str(packages), *lock]
    subprocess.run(command, check=True)
    (tmp_path / "Dockerfile").write_text(PYTHON)
    python, tag = f"{NAME}:python", f"{NAME}:server"
    with closing(docker.DockerClient(base_url=engine_url, version="auto", timeout=DEADLINE)) as engine:
        try:
            engine.images.build(path=str(tmp_path), tag=python, rm=True)
            shutil.rmtree(packages)
            words = {"PYTHON": python}
            engine.images.build(
                path=str(TREE), tag=tag, dockerfile="packaging/server/Dockerfile", buildargs=words, rm=True
            )
            yield tag
        finally:
            for name in (tag, python):
                with suppress(ImageNotFound):
                    engine.images.remove(name, force=True)


@pytest.fixture
def engine(engine_url: str) -> Iterator[docker.DockerClient]:
    """The engine, from which the containers and the volume of the test are removed afterwards."""
    with closing(docker.DockerClient(base_url=engine_url, version="auto", timeout=DEADLINE)) as made:
        yield made
        with suppress(NotFound):
            made.containers.get(NAME).remove(force=True)
        with suppress(NotFound):
            made.volumes.get(NAME).remove(force=True)


def find_port(container: Container) -> int:
    """Return the port of loopback at which the server of a container is published."""
    container.reload()
    bound = container.ports["8443/tcp"]
    assert bound is not None
    return int(bound[0]["HostPort"])


def test_a_server_in_a_container_answers_a_team(engine: docker.DockerClient, image: str) -> None:
    home = {NAME: {"bind": HOME, "mode": "rw"}}
    words = "riseml server init --listen 0.0.0.0:8443 --name localhost --admin alice --json"
    made = json.loads(engine.containers.run(image, words, volumes=home, remove=True))
    environ = {"RISEML_EXECUTOR": "process"}
    allow = ["sh", "-c", f"echo 'allow: [process]' >>{HOME}/server.yml && cat {HOME}/authority/authority.pem"]
    authority = engine.containers.run(image, allow, volumes=home, remove=True).decode()
    port = {"8443/tcp": ("127.0.0.1", 0)}  # any port of loopback
    container = engine.containers.run(
        image, name=NAME, volumes=home, environment=environ, ports=port, detach=True, init=True
    )
    url = f"https://localhost:{find_port(container)}"
    with Client(Address(None, url, made["key"], authority)) as client:

        def answers() -> bool:
            with suppress(Unreachable):
                return bool(client.get_server())
            return False

        wait_for("the server answers", answers, DEADLINE, lambda: container.logs().decode())
        assert client.open_accounts().get_caller()["user"] == "alice"
    context = httpx.create_ssl_context()
    context.load_verify_locations(cadata=authority)
    assert httpx.get(f"{url}/health", verify=context, trust_env=False).text == "ok\n"
    container.stop(timeout=20)
    assert container.wait()["StatusCode"] == 0
