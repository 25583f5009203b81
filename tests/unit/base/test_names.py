"""Names: IDs of experiments and jobs, references of images, addresses."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.base.names import (
    CanonicalId,
    JobName,
    hostname,
    join_address,
    name_repository,
    parse_id,
    show_framework,
    split_address,
    split_reference,
)

DIGEST = "sha256:" + "2" * 64


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("4", CanonicalId(4)),
        (" 4 ", CanonicalId(4)),
        ("144.1", CanonicalId(144, 1)),
        ("4.ps", CanonicalId(4, job_type="ps")),
        ("4.ps.2", CanonicalId(4, job_type="ps", index=2)),
        ("paul.4", CanonicalId(4, user="paul")),
        ("paul.18.1.worker.3", CanonicalId(18, 1, "paul", "worker", 3)),
        ("4.parameter-server", CanonicalId(4, job_type="parameter-server")),
    ],
)
def test_an_id_is_read_and_written(text: str, parsed: CanonicalId) -> None:
    assert parse_id(text) == parsed
    assert str(parsed) == text.strip()


@pytest.mark.parametrize(
    "text",
    ["", "x", "paul", "4.", ".4", "4.1.2", "4.Worker", "-4", "٤", "1234567890", "4 5", f"{' ' * 200}4"],
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(UsageError, match="is not an experiment ID"):
        parse_id(text)


@pytest.mark.parametrize(
    ("text", "jobs"),
    [("4", ["ps.1", "ps.12", "pslike.1"]), ("4.ps", ["ps.1", "ps.12"]), ("4.ps.1", ["ps.1"]), ("4.worker", [])],
)
def test_an_id_names_the_jobs_below_it(text: str, jobs: list[str]) -> None:
    names = [JobName(name) for name in ("ps.1", "ps.12", "pslike.1")]
    assert [name for name in names if parse_id(text).names(name)] == jobs


def test_other_jobs_reach_a_job_by_its_name_without_dots() -> None:
    assert hostname(JobName("worker.1")) == "worker-1"
    assert hostname(JobName("master")) == "master"


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("python", ("python", "latest")),
        ("python:3.11", ("python", "3.11")),
        ("localhost:5000/x", ("localhost:5000/x", "latest")),
        ("localhost:5000/x:1", ("localhost:5000/x", "1")),
        (f"python:3@{DIGEST}", ("python", "3")),
    ],
)
def test_repository_and_tag(reference: str, parts: tuple[str, str]) -> None:
    assert split_reference(reference) == parts


@pytest.mark.parametrize(
    ("reference", "repository"),
    [
        ("python:3.11", "python"),
        ("docker.io/library/python:3.11", "python"),
        ("index.docker.io/library/python", "python"),
        ("library/python", "python"),
        ("docker.io/anna/x:1", "anna/x"),
        ("localhost:5000/library/x:1", "localhost:5000/library/x"),
    ],
)
def test_a_repository_has_the_name_that_engines_show(reference: str, repository: str) -> None:
    assert name_repository(reference) == repository


@pytest.mark.parametrize(
    ("host", "address"), [("10.0.0.1", "10.0.0.1:2222"), ("ps-1", "ps-1:2222"), ("fd00::2", "[fd00::2]:2222")]
)
def test_an_address_of_ipv6_has_brackets(host: str, address: str) -> None:
    assert join_address(host, 2222) == address
    assert split_address(address) == (host, "2222")


def test_users_see_no_name_of_a_plug_in_that_riseml_yml_does_not_name() -> None:
    assert [show_framework(plugin) for plugin in ("tensorflow", "plain", "roles")] == ["tensorflow", "", ""]
