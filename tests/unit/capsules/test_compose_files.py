"""A compose file of a capsule: a service for each job, and the folders that it mounts."""

from __future__ import annotations

import json

import pytest

from riseml.capsules.compose_files import write_compose
from riseml.capsules.exported_run import make_run
from tests.unit.capsules.exported_runs import CONFIG, read, run_of
from tests.unit.planning.test_capsule import SECRET, capsule_of, make


def test_compose_has_a_service_for_each_job_under_the_name_that_the_others_use() -> None:
    services = read(write_compose(run_of(capsule_of(make()), CONFIG)), "compose.yaml")["services"]
    assert list(services) == ["master", "worker-1", "ps-1"]
    cluster = json.loads(services["ps-1"]["environment"]["TF_CONFIG"])["cluster"]
    assert (cluster["ps"], cluster["worker"]) == (["ps-1:2224"], ["worker-1:2223"])
    assert services["master"]["environment"]["MODE"] == "fast", "it stands in the project's own riseml.yml"
    unknown = read(write_compose(run_of(capsule_of(make()))), "compose.yaml")["services"]["master"]["environment"]
    assert unknown["TOKEN"] is None, "compose passes it on"
    assert unknown["API_KEY"] == SECRET, "parameters are in the capsule"


@pytest.mark.parametrize(
    ("folder", "is_foreign", "mounted"),
    [
        ("/srv/data", False, "/srv/data"),
        ("/home/ann/.ssh", True, "./data"),
        ("/srv/a}:/x:rw", False, "./data"),
        ("/srv/$HOME", False, "./data"),
    ],
)
def test_compose_mounts_a_folder_of_the_users_own_server_alone(folder: str, is_foreign: bool, mounted: str) -> None:  # noqa: FBT001  # a column of the table
    capsule = capsule_of(make())
    capsule["data"]["folder"] = folder
    run = make_run(capsule, "", "1:1", has_code=False, is_foreign=is_foreign)
    services = read(write_compose(run), "compose.yaml")["services"]
    assert services["master"]["volumes"][1] == f"${{RISEML_DATA:-{mounted}}}:/data:ro"
