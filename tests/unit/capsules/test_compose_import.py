"""A riseml.yml from a compose file: the names of services and variables."""

from __future__ import annotations

import json

import pytest
import yaml

from riseml.capsules.manifest_import import import_manifest
from riseml.spec.config.loader import check_config


@pytest.mark.parametrize("form", ["a list", "a mapping"])
def test_no_name_in_a_compose_file_becomes_a_command(form: str) -> None:
    names = ("X; touch TAKEN #", "a.b", "1A", "A\nB", "", "$(id)")
    environment: object = {name: "1" for name in names} | {"GOOD": "$(id)"}
    if form == "a list":
        environment = [f"{name}=1" for name in names] + ["GOOD=$(id)"]
    service = {"image": "lab/x\ntouch TAKEN", "environment": environment}
    found = import_manifest(json.dumps({"services": {"a": service}}), "compose.yaml")
    comment = "# Replace COMMAND: it stands for the command of the image lab/x touch TAKEN."
    assert yaml.safe_load(found.text)["train"]["roles"]["a"]["run"].splitlines() == [
        comment,
        "export GOOD='$(id)'",
        "COMMAND",
    ]
    assert found.left_out == tuple(f"services.a.environment: no shell sets a variable named {name}" for name in names)


def import_services(*services: str) -> list[tuple[str, str]]:
    """Import a compose file with some services; return each role with its service, in the order of riseml.yml."""
    bodies = {name: {"image": "a", "command": f"run {place}"} for place, name in enumerate(services)}
    found = import_manifest(json.dumps({"services": bodies}), "compose.yaml")
    assert check_config(found.text).problems == ()
    roles = yaml.safe_load(found.text)["train"]["roles"]
    return [(services[int(role["run"].removeprefix("run "))], name) for name, role in roles.items()]


def test_services_whose_names_no_role_may_have_become_roles_with_others() -> None:
    names = ("localhost", "role", "riseml", "docker", "ray", "build", "tensorboard", "notebook")
    assert import_services(*names) == [(name, f"{name}-service") for name in names]


@pytest.mark.parametrize(
    ("services", "roles"),
    [
        (("a_b", "c", "a-b"), ("a-b-two", "c", "a-b")),
        (("A", "a_", "a"), ("a-two", "a-three", "a")),
        (("ray", "ray-service"), ("ray-service-two", "ray-service")),
        ((*(f"{'x' * 40}_{letter}" for letter in "abc"),), ("x" * 25, f"{'x' * 25}-two", f"{'x' * 25}-three")),
        (("w" * 40, "w" * 41), ("w" * 40, "w" * 25)),
        (("a--b", "a\n"), ("a--b", "a")),
    ],
)
def test_a_service_whose_name_a_role_may_have_keeps_it(services: tuple[str, ...], roles: tuple[str, ...]) -> None:
    assert import_services(*services) == list(zip(services, roles, strict=True))
