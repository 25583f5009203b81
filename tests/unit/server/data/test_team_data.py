"""The data of a team: which folder an address means, who reads and writes it, and what a job sees."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import EngineError, NotFound, Refused, UsageError
from riseml.base.roles import Role, Scope
from riseml.executors.base import ignore_report
from riseml.files.storage_files import ListRequest
from riseml.job_programs.folder_contents import FileUpload
from riseml.model import Caller, Experiment, Owner
from riseml.planning.launch import job_mounts
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.file_places import open_team_data
from riseml.server.data.team_data import (
    TEAM,
    DataSpace,
    SpaceKind,
    check_access,
    find_space,
    hide_mounted,
    list_job_sources,
    list_job_spaces,
    prepare_job_data,
    prepare_spaces,
)
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.team_rules import TeamRules
from riseml.spec.config.types import DataSource, SaveSection
from riseml.spec.server.types import Permission
from tests.unit.control.simulation import change_policy, make_experiment, make_plan
from tests.unit.server.memory_pool import make_host, make_hosts

PAUL = DataSpace(SpaceKind.USER, "paul")
ANN = DataSpace(SpaceKind.USER, "ann")
VISION = DataSpace(SpaceKind.PROJECT, "vision")
SPEECH = DataSpace(SpaceKind.PROJECT, "speech")


def make_caller(role: Role = Role.MEMBER, project: str | None = None, **projects: Role) -> Caller:
    return Caller(Owner("paul", 2001, 2001), role, Scope.ADMIN, tuple(projects.items()), project)


@pytest.fixture
def hosts(tmp_path: Path) -> HostSet:
    return make_hosts(tmp_path, make_host(), rules=TeamRules())


@pytest.mark.parametrize(
    ("address", "space", "below"),
    [
        ("team/a/b", TEAM, ("a", "b")),
        ("team", TEAM, ()),
        ("project/vision/a", VISION, ("a",)),
        ("user/a", PAUL, ("a",)),
        ("user", PAUL, ()),
        ("a/team", PAUL, ("a", "team")),
        ("", PAUL, ()),
        ("users/ann/a", PAUL, ("users", "ann", "a")),
        ("projects/speech", PAUL, ("projects", "speech")),
    ],
)
def test_an_address_is_in_one_space(address: str, space: DataSpace, below: tuple[str, ...]) -> None:
    named = find_space([name for name in address.split("/") if name], "paul")
    assert (named.space, named.below) == (space, below)


@pytest.mark.parametrize("name", ["team", "project", "user", "project/vision/x"])
def test_no_data_of_a_user_has_a_name_on_which_jobs_find_a_mount(name: str) -> None:
    with pytest.raises(UsageError, match=f"no data of yours is named {name.split('/')[0]}: jobs find"):
        find_space(["user", *name.split("/")], "paul")
    assert find_space(["user", "x", *name.split("/")], "paul").space == PAUL


def test_an_address_of_a_project_names_it() -> None:
    with pytest.raises(UsageError, match="names no project"):
        find_space(["project"], "paul")


def test_the_folders_of_spaces_are_apart() -> None:
    folders = [str(space.folder) for space in (TEAM, VISION, PAUL, DataSpace(SpaceKind.USER, "vision"))]
    assert folders == ["team", "projects/vision", "users/paul", "users/vision"]


Rule = tuple[DataSpace, Caller, type[Exception] | None, type[Exception] | None]

RULES: list[Rule] = [
    (TEAM, make_caller(), None, Refused),
    (TEAM, make_caller(Role.ADMIN), None, None),
    (TEAM, make_caller(Role.ADMIN, project="vision", vision=Role.MEMBER), None, Refused),
    (PAUL, make_caller(), None, None),
    (PAUL, make_caller(project="vision", vision=Role.MEMBER), Refused, Refused),
    (VISION, make_caller(vision=Role.MEMBER), None, None),
    (VISION, make_caller(vision=Role.VIEWER), None, Refused),
    (VISION, make_caller(project="vision", vision=Role.MEMBER), None, None),
    (SPEECH, make_caller(vision=Role.MAINTAINER), NotFound, NotFound),
    (SPEECH, make_caller(project="vision", vision=Role.MEMBER, speech=Role.MEMBER), NotFound, NotFound),
    (SPEECH, make_caller(Role.ADMIN), None, None),
    (DataSpace(SpaceKind.PROJECT, "../users"), make_caller(), NotFound, NotFound),
]


@pytest.mark.parametrize(("space", "caller", "read", "write"), RULES)
def test_who_reads_and_writes_a_space(
    space: DataSpace, caller: Caller, read: type[Exception] | None, write: type[Exception] | None
) -> None:
    for writes, refusal in ((False, read), (True, write)):
        if refusal is None:
            check_access(space, caller, writes=writes)
        else:
            with pytest.raises(refusal):
                check_access(space, caller, writes=writes)


def test_an_unknown_project_is_as_one_of_others() -> None:
    answers = []
    for name in ("speech", "nobody"):
        with pytest.raises(NotFound) as raised:
            check_access(DataSpace(SpaceKind.PROJECT, name), make_caller(vision=Role.MEMBER), writes=False)
        answers.append(str(raised.value).replace(name, ""))
    assert answers[0] == answers[1]


def test_spaces_are_below_folders_that_only_the_server_enters(hosts: HostSet, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        prepare_spaces(tmp_path / "data", [TEAM, VISION, PAUL])
    finally:
        os.umask(before)
    modes = {
        path: stat.S_IMODE((tmp_path / "data" / path).stat().st_mode)
        for path in ("team", "projects", "projects/vision", "users", "users/paul")
    }
    assert modes == {"team": 0o755, "projects": 0o700, "projects/vision": 0o755, "users": 0o700, "users/paul": 0o755}
    assert hosts.roots.data == str(tmp_path / "data")


def test_a_link_in_place_of_a_space_is_refused(hosts: HostSet, tmp_path: Path) -> None:
    prepare_spaces(tmp_path / "data", [ANN])
    (tmp_path / "data/users/paul").symlink_to("ann")
    with pytest.raises(EngineError, match="cannot be made"):
        prepare_spaces(tmp_path / "data", [PAUL])
    with pytest.raises(EngineError, match="cannot be opened"):
        open_team_data(hosts, PAUL, writes=False).list_files(ListRequest(""))


def test_a_user_has_the_folders_on_which_the_others_are_mounted(hosts: HostSet, tmp_path: Path) -> None:
    prepare_job_data(tmp_path / "data", "paul", "vision")
    prepare_job_data(tmp_path / "data", "paul", None)
    own = tmp_path / "data/users/paul"
    made = sorted(str(path.relative_to(own)) for path in own.rglob("*"))
    assert made == ["project", "project/vision", "team", "user"]
    sources = {str(source) for source in list_job_sources("paul", "vision")}
    assert sources == {"team", "projects/vision", "users/paul", *(f"users/paul/{path}" for path in made[1:])}
    (own / "x").touch()
    for deep in (False, True):
        listing = open_team_data(hosts, PAUL, writes=False).list_files(ListRequest("", deep=deep))
        shown = hide_mounted(find_space([], "paul"), listing)
        assert [entry.path for entry in shown.entries] == ["x"]
        assert hide_mounted(find_space(["team"], "paul"), listing) == listing


@pytest.mark.parametrize("kind", ["link", "file", "full"])
def test_nothing_is_mounted_on_what_a_user_has_there(kind: str, hosts: HostSet, tmp_path: Path) -> None:
    own = tmp_path / "data/users/paul"
    (own / "a/b").mkdir(parents=True)
    if kind == "link":
        (own / "team").symlink_to("a")
    elif kind == "file":
        (own / "team").touch()
    else:
        (own / "team/x").mkdir(parents=True)
    with pytest.raises(EngineError, match="users/paul/team") as raised:
        prepare_job_data(Path(str(hosts.roots.data)), "paul", None)
    assert raised.value.permanent
    assert "the admin" in (raised.value.hint or "")
    left = {path.name for path in own.rglob("*")}
    assert left == {"a", "b", "team"} | ({"x"} if kind == "full" else set())


def test_files_are_written_and_listed_in_their_space(hosts: HostSet, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing is in data://team"):
        open_team_data(hosts, TEAM, writes=False).list_files(ListRequest(""))
    with pytest.raises(NotFound):
        open_team_data(hosts, PAUL, writes=False).read_file("../ann/x", 0, None).__next__()
    for space in (PAUL, TEAM):
        writer = open_team_data(hosts, space, writes=True).write_file(FileUpload("a/x", "0" * 16, 2))
        writer.write(b"hi" + hashlib.sha256(b"hi").digest())
        writer.finish()
        writer.close()
    assert (tmp_path / "data/users/paul/a/x").read_bytes() == (tmp_path / "data/team/a/x").read_bytes() == b"hi"
    assert [entry.path for entry in open_team_data(hosts, PAUL, writes=False).list_files(ListRequest("a")).entries] == [
        "x"
    ]


def make_own(team_project: str | None = None, *urls: str, bound: bool = False) -> Experiment:
    plan = change_policy(make_plan("train"), data=tuple(DataSource(url, f"d{at}") for at, url in enumerate(urls)))
    plan = replace(plan, bound=bound)
    return replace(make_experiment(1, plan, owner=Owner("paul", 2001, 2001)), team_project=team_project)


@pytest.mark.parametrize(
    ("team_project", "folders"),
    [
        (None, {"/data": "users/paul", "/data/team": "team", "/data/user": "users/paul"}),
        (
            "vision",
            {
                "/data": "users/paul",
                "/data/team": "team",
                "/data/project/vision": "projects/vision",
                "/data/user": "users/paul",
            },
        ),
    ],
)
def test_a_job_mounts_what_its_user_may_read(
    team_project: str | None, folders: dict[str, str], hosts: HostSet, tmp_path: Path
) -> None:
    experiment = make_own(team_project)
    target = DataFetcher("5e17e4", hosts).find_target(experiment, None)
    mounts = [mount for mount in job_mounts(experiment, target) if mount.target.startswith("/data")]
    assert {mount.target: mount.source for mount in mounts} == {
        inner: f"{tmp_path}/data/{folder}" for inner, folder in folders.items()
    }
    assert all(mount.read_only for mount in mounts)
    assert list_job_spaces("paul", team_project)[0] is TEAM


def test_the_job_of_a_key_of_a_project_reads_nothing_that_is_its_users(hosts: HostSet, tmp_path: Path) -> None:
    """Who has found such a key must not print its user's data into a log."""
    fetcher = DataFetcher("5e17e4", hosts)
    experiment = make_own("vision", bound=True)
    target = fetcher.find_target(experiment, None)
    mounts = [mount for mount in job_mounts(experiment, target) if mount.target.startswith("/data")]
    root = f"{tmp_path}/data"
    assert {mount.target: mount.source for mount in mounts} == {
        "/data/team": f"{root}/team",
        "/data/project/vision": f"{root}/projects/vision",
    }
    assert target.view is not None
    assert target.view.folder == f"{root}/projects/vision", "of a process"
    assert [str(source) for source in list_job_sources(None, "vision")] == ["team", "projects/vision"]
    prepare_job_data(tmp_path / "data", None, "vision")
    assert not (tmp_path / "data/users").exists()
    for url in ("data://x", "data://user/x"):
        plans = [make_own("vision", url).plan]
        with pytest.raises(Refused, match="a key of the project vision alone reads no data of its user"):
            fetcher.check_team_data(plans, "paul", "vision", is_bound=True)
        fetcher.check_team_data(plans, "paul", "vision", is_bound=False)
    fetcher.check_team_data([make_own("vision", "data://project/vision/x").plan], "paul", "vision", is_bound=True)


def test_a_server_for_one_user_mounts_the_whole_folder(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path, make_host())
    target = DataFetcher("5e17e4", hosts).find_target(make_own(), None)
    assert [mount.source for mount in job_mounts(make_own(), target)][1:] == [f"{tmp_path}/data"]


@pytest.mark.parametrize(
    ("team_project", "url", "is_read"),
    [
        (None, "data://team/x", True),
        (None, "data://user/x", True),
        (None, "data://x", True),
        (None, "data://project/vision/x", False),
        ("vision", "data://project/vision/x", True),
        ("vision", "data://project/speech/x", False),
    ],
)
def test_data_that_an_experiment_names_is_its_own(
    team_project: str | None,
    url: str,
    is_read: bool,  # noqa: FBT001
    hosts: HostSet,
    tmp_path: Path,
) -> None:
    for folder in ("team", "users/paul", "users/ann", "projects/vision", "projects/speech"):
        (tmp_path / "data" / folder / "x").mkdir(parents=True)
    experiment = make_own(team_project, url)
    fetcher = DataFetcher("5e17e4", hosts)
    if is_read:
        fetcher.check_team_data([experiment.plan], "paul", team_project, is_bound=False)
        fetcher.fetch_data(experiment, ignore_report)
        (place,) = dict(fetcher.find_target(experiment, None).view.parts).values()  # type: ignore[union-attr]
        assert str(place).startswith(f"{tmp_path}/data/")
        assert "ann" not in str(place)
        assert "speech" not in str(place)
    else:
        with pytest.raises(Refused, match="only when it belongs to that project"):
            fetcher.check_team_data([experiment.plan], "paul", team_project, is_bound=False)
        with pytest.raises(Refused):
            fetcher.fetch_data(experiment, ignore_report)


def test_a_link_that_leads_to_another_space_is_not_followed(hosts: HostSet, tmp_path: Path) -> None:
    """Somebody with the rights of the server has made it: the server itself makes none (`folder_links`)."""
    (tmp_path / "data/users/ann/x").mkdir(parents=True)
    (tmp_path / "data/users/paul").mkdir()
    (tmp_path / "data/users/paul/x").symlink_to("../ann/x")
    with pytest.raises(EngineError, match="there is no folder data://x"):
        DataFetcher("5e17e4", hosts).fetch_data(make_own(None, "data://x"), ignore_report)


def test_a_store_without_tls_needs_the_word_of_the_admin(tmp_path: Path) -> None:
    row = {"name": "lab", "urls": ["s3://datasets"], "saves": ["s3://datasets"], "insecure": True, "jobs": True}
    (tmp_path / "stores.yml").write_text(json.dumps({"stores": [{**row, "endpoint": "http://minio.example.org"}]}))
    (tmp_path / "stores.yml").chmod(0o600)
    plan = make_plan("train")
    uses = (
        change_policy(plan, data=(DataSource("s3://datasets/x", "x"),)),
        change_policy(plan, store="lab"),
        change_policy(plan, save=SaveSection("s3://datasets/y")),
    )
    for used in uses:
        with pytest.raises(Refused, match="`insecure: true` of the store lab") as refused:
            DataFetcher("5e17e4", make_hosts(tmp_path, make_host(), rules=TeamRules())).check_plans([used])
        assert "allow: [plaintext]" in (refused.value.hint or "")
        for rules in (None, TeamRules(frozenset({Permission.PLAINTEXT}))):
            DataFetcher("5e17e4", make_hosts(tmp_path, make_host(), rules=rules)).check_plans([used])
