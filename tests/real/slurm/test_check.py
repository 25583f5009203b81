"""What `riseml pool check` says of a real cluster, and that the settings of pool.yml reach Slurm."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.executors.slurm.cluster_check import ClusterCheck
from riseml.executors.slurm.command_site import ThisMachine
from riseml.executors.slurm.slurm_commands import SlurmCommands
from riseml.spec.pool.types import SlurmSpec
from tests.support.rig import GO, Rig, single
from tests.support.slurm_cluster import SlurmCluster
from tests.support.waiting import DEADLINE, wait_for

STRANGER = "games"  # a user that every Debian has; not an administrator of the cluster


class ClusterSite(ThisMachine):
    """The network of the cluster, as a user."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def wrap(self, command: Sequence[str]) -> list[str]:
        return [*self._words, *command]


@pytest.fixture
def settings(tmp_path: Path) -> SlurmSpec:
    """A folder that every node sees."""
    return SlurmSpec(str(tmp_path / "shared"))


@pytest.fixture(scope="module", autouse=True)
def partitions(cluster: SlurmCluster) -> Iterator[None]:
    """Partitions for some, for short jobs, and for none."""
    made = {"closed": "AllowGroups=news", "short": "MaxTime=2", "broken": "State=DOWN"}
    for name, option in made.items():
        cluster.ask("scontrol", "create", f"partition={name}", "Nodes=n1", option)
    yield
    for name in made:
        cluster.ask("scontrol", "delete", f"partition={name}")


@pytest.fixture(autouse=True)
def free_nodes(cluster: SlurmCluster) -> None:
    """A check asks idle nodes alone: the jobs of the test before may still be ending, and a node that answers the
    controller late on a busy machine is `idle*`."""
    cluster.wait_idle()


def wait_for_nodes(cluster: SlurmCluster) -> None:
    """Wait until no node has anything to do, whether it takes jobs or not."""
    busy = {"allocated", "mixed", "completing", "draining"}
    wait_for("no node works", lambda: busy.isdisjoint(cluster.ask("sinfo", "-hNo", "%T").split()), DEADLINE)


def check(cluster: SlurmCluster, settings: SlurmSpec, user: str = "root") -> list[tuple[str, str, str]]:
    """Return topic, outcome and sentence of each finding."""
    commands = SlurmCommands(ClusterSite(cluster.enter(user)))
    return [(one.topic, one.outcome.value, one.message) for one in ClusterCheck(settings, commands).run()]


def test_a_cluster_that_fits_and_a_node_that_is_not_asked(cluster: SlurmCluster, settings: SlurmSpec) -> None:
    found = check(cluster, settings)
    assert [(topic, outcome) for topic, outcome, _ in found] == [("slurm", "ok"), ("jobs", "ok"), ("nodes", "ok")]
    assert found[-1][2].startswith("all 3 idle nodes see")
    cluster.ask("scontrol", "update", "nodename=n3", "state=drain", "reason=a new disk")
    try:
        wait_for_nodes(cluster)
        assert check(cluster, settings)[-1] == ("nodes", "note", "not asked: n3 is drained (a new disk)")
    finally:
        cluster.ask("scontrol", "update", "nodename=n3", "state=resume")
    assert list(Path(settings.folder).iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "topic", "sentence"),
    [
        (
            SlurmSpec("", partition="nosuch"),
            "slurm",
            "partition nosuch is not there, has no nodes, or is hidden from you",
        ),
        (SlurmSpec("", partition="closed"), "jobs", "Slurm refuses: your groups may not use this partition"),
        (SlurmSpec("", partition="broken"), "partition", "partition broken is down: it starts no jobs now"),
        (
            SlurmSpec("", partition="short", time_limit=600.0),
            "partition",
            "partition short allows 2: such a job never starts",
        ),
        (SlurmSpec("", constraint="a100"), "jobs", "Slurm refuses: no node has the features of `constraint`"),
        (SlurmSpec("", reservation="course"), "jobs", "Slurm refuses: there is no such reservation now"),
    ],
)
def test_what_keeps_every_job_out_is_one_sentence(
    cluster: SlurmCluster, settings: SlurmSpec, changed: SlurmSpec, topic: str, sentence: str
) -> None:
    found = [one for one in check(cluster, replace(changed, folder=settings.folder), STRANGER) if one[1] == "failed"]
    assert [one[0] for one in found] == [topic]
    assert sentence in found[0][2]


def test_a_folder_and_a_user_that_a_node_sees_in_another_way(
    cluster: SlurmCluster, settings: SlurmSpec, tmp_path: Path
) -> None:
    Path(settings.folder).mkdir()
    Path(settings.folder).chmod(0o775)
    names = tmp_path / "passwd"
    names.write_text(Path("/etc/passwd").read_text().replace("root:x:0:", "anna:x:0:"))
    with ExitStack() as stack:
        stack.enter_context(cluster.mount_on("n2", "-t", "tmpfs", "none", at=settings.folder))
        stack.enter_context(cluster.mount_on("n3", "--bind", str(names), at="/etc/passwd"))
        found = check(cluster, settings)
    messages = [message for _, outcome, message in found if outcome == "failed"]
    assert any(one.startswith(f"node n2: {settings.folder} is not the folder that the server has") for one in messages)
    anna = "node n3: user 0 is anna there and root here: users need the same IDs on all nodes"
    assert anna in messages, found
    written = f"other users may write in {settings.folder} (mode 0775), and could replace what your jobs run"
    assert f"{written}: `chmod go-w {settings.folder}`" in messages
    assert len(messages) == 3


def test_a_full_folder_a_frozen_controller_and_no_slurm(
    cluster: SlurmCluster, settings: SlurmSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(settings.folder).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", settings.folder], check=True)
    try:
        assert check(cluster, settings)[-1][2] == f"{settings.folder} cannot be written by the server: it is full"
    finally:
        subprocess.run(["umount", settings.folder], check=True)
    cluster.freeze()
    try:
        (finding,) = check(cluster, settings)
    finally:
        cluster.thaw()
    assert finding[2].startswith("Slurm's controller does not answer")
    monkeypatch.setenv("PATH", "/nowhere")
    (missing,) = ClusterCheck(settings, SlurmCommands()).run()
    assert missing.message.startswith("sinfo is not on this machine (run the server on a login node")


def test_settings_reach_slurm_and_what_it_refuses_fails(tmp_path: Path, cluster: SlurmCluster) -> None:
    home = tmp_path / "home"
    cluster.write_pool(home, ", constraint: a100")
    good = ", partition: all, constraint: fast, reservation: course, account: lab, time_limit: 7m"
    more = ", options: [--nice=77], step_options: [--threads-per-core=1]"
    cluster.ask("scontrol", "update", "nodename=n2", "availablefeatures=fast", "activefeatures=fast")
    reservation = ["reservation=course", "users=root", "nodes=n2", "starttime=now", "duration=10"]
    cluster.ask("scontrol", "create", *reservation)
    rig = Rig(home, None)
    rig.host = cluster
    with rig:
        try:
            rig.submit(single(GO))
            refused = rig.wait_closed("1")
            cluster.write_pool(home, good + more)
            rig.submit(single(GO))
            rig.wait_state("2", "RUNNING")
            (job,) = cluster.list_jobs(rig.server_id())
            words = cluster.ask("scontrol", "show", "job", job).split()
            rig.go_file("2").touch()
            assert rig.wait_closed("2")["state"] == "FINISHED"
        finally:
            cluster.end_jobs(rig.server_id())
            cluster.ask("scontrol", "delete", "reservation=course")
            cluster.ask("scontrol", "update", "nodename=n2", "availablefeatures=", "activefeatures=")
        rig.clean_up()
    assert refused["state"] == "FAILED"
    assert "no node has the features of `constraint`" in refused["message"]
    assert {
        "Partition=all",
        "Features=fast",
        "Reservation=course",
        "NodeList=n2",
        "Account=lab",
        "TimeLimit=00:07:00",
        "Nice=77",
    } <= set(words)
