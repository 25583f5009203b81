"""What a team's server refuses on its hosts, unless server.yml allows it, and which images users may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import Refused
from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.executors.pool import HostPool
from riseml.model import Image, World
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import LocalMode, record_executor
from riseml.server.hosts.team_rules import TeamRules
from riseml.spec.pool.types import HostSpec
from riseml.spec.server.types import Permission
from tests.unit.control.simulation import make_experiment, make_plan

NOTHING = World(())
WAITING = World((make_experiment(1, make_plan("train")),))
ALL = TeamRules(frozenset(Permission))
TCP = "{name: gpu1, url: 'tcp://gpu1:2375', address: gpu1, insecure: true}"
SSH = "{name: gpu1, url: 'ssh://gpu1', address: gpu1}"
SSH2 = "{name: gpu2, url: 'ssh://gpu2', address: gpu2}"


def make_hosts(home: Path, rules: TeamRules | None, pool: str = "", **settings: object) -> HostSet:
    if pool:
        (home / "pool.yml").write_text(pool)
    made = replace(Settings(home, home / "output", home / "data"), **settings)  # type: ignore[arg-type]  # of the test
    return HostSet(made, "5e17e4", HostPool((), 2.0, lambda *_: None), rules=rules)


Case = tuple[Permission, str, dict[str, object], str]

CASES: list[Case] = [
    (Permission.PROCESS, "", {"executor": "process"}, "RISEML_EXECUTOR is process"),
    (Permission.HOST_NETWORK, "", {"build_network": "host"}, "RISEML_BUILD_NETWORK is host"),
    (Permission.PLAINTEXT, "", {"engine": "tcp://gpu1:2375"}, "DOCKER_HOST is tcp://gpu1:2375"),
    (Permission.PLAINTEXT, f"hosts: [{TCP}]", {}, "the host gpu1 is tcp://gpu1:2375"),
    (Permission.HOST_NETWORK, f"hosts: [{SSH}]\nnetwork: host", {}, "`network: host`"),
    (Permission.PLAINTEXT, f"hosts: [{SSH}, {SSH2}]\nencrypted: false", {}, "`encrypted: false`"),
]


@pytest.mark.parametrize(("permission", "pool", "settings", "words"), CASES)
def test_what_an_admin_must_allow(
    permission: Permission, pool: str, settings: dict[str, object], words: str, tmp_path: Path
) -> None:
    others = TeamRules(frozenset(Permission) - {permission})
    with pytest.raises(Refused, match=words) as refused:
        make_hosts(tmp_path, others, pool, **settings).open_hosts(NOTHING)
    assert f"allow: [{permission.value}]" in (refused.value.hint or "")
    for rules in (TeamRules(frozenset({permission})), None):
        hosts = make_hosts(tmp_path, rules, pool, **settings)
        hosts.open_hosts(NOTHING)
        hosts.close()


def test_a_pool_that_is_changed_to_what_is_not_allowed_stays_as_it_was(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path, TeamRules(), f"hosts: [{SSH}]")
    hosts.open_hosts(NOTHING)
    (tmp_path / "pool.yml").write_text(f"hosts: [{SSH}]\nnetwork: host\n")
    hosts.refresh(NOTHING)
    assert isinstance(hosts.trouble, Refused)
    assert hosts.network.value != "host"
    with (
        pytest.raises(Refused, match="without TLS"),
        hosts.try_host(HostSpec(HostName("gpu9"), "tcp://gpu9:2375", insecure=True)),
    ):
        pass
    hosts.close()


def test_no_permission_gives_jobs_to_a_cluster(tmp_path: Path) -> None:
    cases: list[Callable[[], HostSet]] = [
        lambda: make_hosts(tmp_path, ALL, executor="slurm"),
        lambda: make_hosts(tmp_path, ALL, "engine: slurm\nslurm: {folder: /shared/r}\n"),
    ]
    for make in cases:
        with pytest.raises(Refused, match="no jobs to a Slurm cluster") as refused:
            make().open_hosts(NOTHING)
        hint = refused.value.hint or ""
        assert hint.startswith("list Docker hosts in its pool.yml, and unset RISEML_EXECUTOR; ")
        assert "`riseml --server local train --executor slurm` on the login node" in hint


def test_data_in_a_volume_is_refused(tmp_path: Path) -> None:
    pool = f"hosts: [{SSH}]\nstorage: {{data: {{volume: datasets}}}}\n"
    with pytest.raises(Refused, match="which every job mounts as a whole"):
        make_hosts(tmp_path, ALL, pool).open_hosts(NOTHING)


def test_processes_do_not_take_the_place_of_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.server.hosts.choose_executor.DEFAULT_ENGINE", f"unix://{tmp_path}/none.sock")
    (tmp_path / "consent.json").write_text('{"processes": true, "variables": []}')
    (tmp_path / "consent.json").chmod(0o600)
    engine = {"engine": f"unix://{tmp_path}/none.sock"}
    hosts = make_hosts(tmp_path, TeamRules(), **engine)
    hosts.open_hosts(NOTHING)
    assert hosts.mode == LocalMode("docker"), "the consent of the server's user is not that of the team"
    hosts.close()
    for rules in (ALL, None):
        fallen = make_hosts(tmp_path, rules, **engine)
        fallen.open_hosts(NOTHING)
        assert fallen.executor_name == "process"
        fallen.close()


def test_experiments_that_wait_for_processes_do_not_begin_on_a_teams_server(tmp_path: Path) -> None:
    record_executor(tmp_path, "process")
    with pytest.raises(Refused, match="open experiments were accepted for processes"):
        make_hosts(tmp_path, TeamRules()).open_hosts(WAITING)


PATTERNS = ("python:3.*", "pytorch/*", "registry.example.org:5000/lab/*", "docker.io/library/busybox", "sha256/*")


@pytest.mark.parametrize(
    ("image", "is_listed"),
    [
        ("python:3.12", True),
        ("docker.io/library/python:3.12-slim", True),
        ("python", False),  # that is python:latest
        ("python:2.7", False),
        ("python@sha256:" + "a" * 64, False),  # it may be any version
        ("python:3.12@sha256:" + "a" * 64, False),  # an engine takes the digest, and not the tag
        ("pytorch/pytorch:2.4.0", True),
        ("pytorch/pytorch@sha256:" + "a" * 64, True),
        ("index.docker.io/pytorch/pytorch", True),
        ("evil.example.org/pytorch/pytorch:2.4.0", False),
        ("evil/pytorch/pytorch", False),
        ("registry.example.org:5000/lab/a:1", True),
        ("registry.example.org/lab/a:1", False),
        ("busybox:1.36", True),
        ("busybox", True),
        ("busybox-evil", False),
        ("Python:3.12", False),
    ],
)
def test_an_image_is_one_that_the_admin_has_listed(image: str, is_listed: bool) -> None:  # noqa: FBT001
    rules = TeamRules(images=PATTERNS)
    if is_listed:
        rules.check_image(image)
    else:
        with pytest.raises(Refused, match="not among those that this server's admin allows: python:3"):
            rules.check_image(image)
    TeamRules().check_image(image)


@pytest.mark.parametrize(
    "image",
    [
        "sha256:" + "a" * 64,
        "a" * 64,
        "4f2a",
        "f",
        "sha256:4f2a",
        "riseml/code:4f2a",
        "riseml/environment:4f2a",
        "docker.io/riseml/step:1",
        "index.docker.io/riseml/image",
    ],
)
def test_no_user_names_an_image_of_another_users_code(image: str) -> None:
    for rules in (TeamRules(), TeamRules(images=("*",))):
        with pytest.raises(Refused, match=r"other users' code|of any user"):
            rules.check_image(image)


def test_every_image_of_a_plan_is_checked_and_so_is_what_it_is_said_to_be() -> None:
    rules = TeamRules(images=("python:*",))
    plan = replace(make_plan("train"), image=Image("python:3.12"))
    rules.check_plans([plan], (("python:3.12", "python@sha256:" + "a" * 64),))
    with pytest.raises(Refused, match="busybox"):
        rules.check_plans([plan, replace(plan, role_images=(("ps", Image("busybox")),))])
    with pytest.raises(Refused, match="which no registry gives"):
        rules.check_plans([plan], (("python:3.12", "sha256:" + "a" * 64),))
