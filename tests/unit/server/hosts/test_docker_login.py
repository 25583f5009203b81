"""A single user's own Docker configuration gives credentials: in its file, or by programs, which may hang."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from riseml.base.secrets import HUB, TOKEN_LOGIN, RegistryCredential
from riseml.server.hosts.docker_login import find_docker_login

ME = RegistryCredential("me", "pass:word")
AUTH = {"auth": base64.b64encode(b"me:pass:word").decode()}


def _write(folder: Path, config: Any, **helpers: str) -> dict[str, str]:
    """Return the environment of a server whose user has this configuration and these credential helpers."""
    docker, programs = folder / ".docker", folder / "bin"
    docker.mkdir()
    programs.mkdir()
    (docker / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    for name, script in helpers.items():
        program = programs / f"docker-credential-{name}"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return {"HOME": str(folder), "PATH": f"{programs}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("config", "host", "expected"),
    [
        ({"auths": {"registry.lab": AUTH}}, "registry.lab", ME),
        ({"auths": {"https://registry.lab": AUTH}}, "registry.lab", ME),
        ({"auths": {"https://index.docker.io/v1/": AUTH}}, HUB, ME),
        ({"auths": {"registry.lab": {"identitytoken": "t"}}}, "registry.lab", RegistryCredential(TOKEN_LOGIN, "t")),
        ({"auths": {"registry.lab": AUTH}}, "other.lab", None),
        ({"auths": {"registry.lab": {}}}, "registry.lab", None),
        ({"auths": {"registry.lab": {"auth": "%"}}}, "registry.lab", None),
        ({"auths": [], "credHelpers": 3}, "registry.lab", None),
        ("[1]", "registry.lab", None),
        ("{", "registry.lab", None),
    ],
)
def test_credentials_of_the_file(config: Any, host: str, expected: object, tmp_path: Path) -> None:
    environ = _write(tmp_path, config)
    assert find_docker_login(environ, host) == expected
    assert find_docker_login({**environ, "DOCKER_CONFIG": str(tmp_path / "none")}, host) is None
    assert [path.name for path in (tmp_path / ".docker").iterdir()] == ["config.json"]


GIVES = """read key; [ "$1 $key" = "get registry.lab" ] && echo '{"Username": "me", "Secret": "pass:word"}'"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (GIVES, ME),
        ("exit 1", None),
        ("echo no JSON", None),
        ("echo '{}'", None),
        ("exec sleep 600", None),
    ],
)
@pytest.mark.parametrize("key", ["credHelpers", "credsStore"])
def test_a_helper_is_asked_and_cannot_hang(key: str, script: str, expected: object, tmp_path: Path) -> None:
    config = {key: {"registry.lab": "own"} if key == "credHelpers" else "own"}
    most_wait = 0.2 if "sleep" in script else 30
    assert find_docker_login(_write(tmp_path, config, own=script), "registry.lab", most_wait) == expected


def test_a_helper_that_is_no_program_is_not_run(tmp_path: Path) -> None:
    for name in ("../x", "a b", "none"):
        environ = {"DOCKER_CONFIG": str(tmp_path), "PATH": "/usr/bin:/bin"}
        (tmp_path / "config.json").write_text(json.dumps({"credsStore": name, "auths": {"registry.lab": AUTH}}))
        assert find_docker_login(environ, "registry.lab") == ME, "the file has it, too"
