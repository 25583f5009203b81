"""Faults of a Slurm cluster while gangs run on it: its controller, its nodes, their network, its site and its files."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from riseml.base.faultpoints import Point
from tests.chaos.crashes import ALL_SCENES, ONE_LIFE, run_with_crashes
from tests.chaos.harms import fill_disk, mount_small_disk
from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, make_good_scene, write_solo
from tests.chaos.sites import Fault, Site
from tests.chaos.slurm_harms import HarmedCluster
from tests.chaos.slurm_scenes import judge_gang, make_lost_gang, make_retried_gang, make_whole_gang

SLURM = ("slurm",)
_QUICK = {"SLURMD_TIMEOUT": "10"}  # seconds until the controller takes a silent node for dead
_PREEMPTION = {
    "SLURM_LINES": "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"
    "PartitionName=urgent Nodes=ALL PriorityTier=9 MaxTime=60 DefMemPerCPU=200"
}
_SPARE: dict[str, Any] = {"resources": {"cpus": 2, "mem": "200MiB"}}
"""Two roles share a node, so that another attempt runs while one node of three is away."""
_AWAY, _FROZEN, _SUSPENDED = 10.0, 20.0, 75.0  # seconds
_NOT_REACHED = frozenset({"P13", "P14", "P15"})  # points of engines, and of shared folders that a gang removes at once

Harm = Callable[[HarmedCluster, PatientRig], None]
Case = tuple[Scene, Harm]


def cluster_faults() -> list[Fault]:
    """Return a fault for each kind."""
    rows: list[tuple[str, Callable[[Site], Tally]]] = [
        ("Slurm: kill -9 of the server at every step", kill_server_around_steps),
        ("Slurm: controller away for 10 s", stop_controller),
        ("Slurm: kill -9 of the controller", kill_controller),
        ("Slurm: controller frozen for 20 s", freeze_controller),
        ("Slurm: answer of a submission lost", lose_answer),
        ("Slurm: slurmd killed, back after 4 s", kill_slurmd_shortly),
        ("Slurm: slurmd killed, stays away", kill_slurmd),
        ("Slurm: node powered off (srun returns 0)", power_off_node),
        ("Slurm: node off and on within seconds", power_cycle_node),
        ("Slurm: node cut off from the network", cut_node_off),
        ("Slurm: scancel of one step", cancel_step),
        ("Slurm: scancel by the site", cancel_job),
        ("Slurm: preempted by another job", preempt_job),
        ("Slurm: requeued by the site", requeue_job),
        ("Slurm: suspended for 75 s, then resumed", suspend_job),
        ("Slurm: shared folder full, then free", fill_shared_folder),
        ("Slurm: shared folder full from the start", fill_shared_folder_before_start),
    ]
    return [Fault(name, inflict, SLURM) for name, inflict in rows]


@contextmanager
def _open_cluster(site: Site, **settings: str) -> Iterator[HarmedCluster]:
    cluster = HarmedCluster(site.folder / f"c{uuid4().hex[:6]}", **settings)
    try:
        yield cluster
    finally:
        cluster.down()


def _run_cases(site: Site, cases: tuple[Case, ...], **settings: str) -> Tally:
    """Run one gang after the other on a cluster, and harm each once it runs and prints."""
    found = Tally()
    with _open_cluster(site, **settings) as cluster:
        for scene, harm in cases:
            with replace(site, cluster=cluster).rig() as rig:
                rig.start()
                rig.submit(scene.config)
                rig.wait("it runs", lambda rig=rig: rig.state() == "RUNNING")  # type: ignore[misc]  # mypy: no type for the default
                rig.wait("it prints", lambda rig=rig: len(rig.lines("1", follow=False)) > 2)  # type: ignore[misc]  # likewise
                harm(cluster, rig)
                found += judge_gang(rig, scene)
    return found


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def kill_server_around_steps(site: Site) -> Tally:
    """Kill the server before and after every save and every action, and at each named point."""
    found = Tally()
    with _open_cluster(site) as cluster:
        there = replace(site, cluster=cluster)
        for points in ((Point.SAVING, Point.SAVED), (Point.ACTING, Point.ACTED)):
            orders = [f"{point.value}:1" for point in points]
            for make in ALL_SCENES:
                found += run_with_crashes(there, make(), itertools.cycle(orders))
        orders = [order for order in ONE_LIFE if order.partition(":")[0] not in _NOT_REACHED]
        found += run_with_crashes(there, make_good_scene(60), orders)
    return found


def stop_controller(site: Site) -> Tally:
    """End the controller; one gang ends while it is away, and one after it is back."""

    def harm(cluster: HarmedCluster, _: PatientRig) -> None:
        cluster.end_controller(signal.SIGTERM)
        _wait(_AWAY)
        cluster.start_controller()

    return _run_cases(site, ((make_whole_gang(400), harm), (make_whole_gang(60), harm)))


def kill_controller(site: Site) -> Tally:
    """Kill the controller when its state is saved, and at once: then it forgets the job, and an attempt may be lost."""

    def harm(cluster: HarmedCluster, _: PatientRig) -> None:
        cluster.end_controller(signal.SIGKILL)
        cluster.start_controller()
        cluster.resume_nodes(20.0)

    def harm_later(cluster: HarmedCluster, rig: PatientRig) -> None:
        _wait(_AWAY)
        harm(cluster, rig)

    forgotten = make_whole_gang(100, retry={"max": 3, "on": ["host-lost"]})
    cases = ((make_whole_gang(500), harm_later), (replace(forgotten, attempts=None, promised=False), harm))
    return _run_cases(site, cases)


def freeze_controller(site: Site) -> Tally:
    """Freeze the controller; one gang ends in that time, and one after it."""

    def harm(cluster: HarmedCluster, _: PatientRig) -> None:
        cluster.freeze()
        _wait(_FROZEN)
        cluster.thaw()

    return _run_cases(site, ((make_whole_gang(600), harm), (make_whole_gang(100), harm)))


def lose_answer(site: Site) -> Tally:
    """Lose a submission before Slurm has it, and the answer to one that Slurm has taken: nothing runs twice."""
    found = Tally()
    with _open_cluster(site) as cluster:
        for call in ("", '"$@" >/dev/null;'):
            scene = make_whole_gang(20)
            with replace(site, cluster=cluster).rig() as rig:
                rig.environment["PATH"] = _write_deaf_sbatch(rig.home.with_name("bin"), cluster, call)
                rig.start()
                rig.submit(scene.config)
                found += judge_gang(rig, scene)
                assert rig.home.with_name("bin").joinpath("lost").exists(), "the first answer was lost"
    return found


def _write_deaf_sbatch(folder: Path, cluster: HarmedCluster, call: str) -> str:
    """Write an sbatch that makes this call of the true one first and loses its answer; return the PATH that has it."""
    path = cluster.environment["PATH"]
    true = path.partition(":")[0] + "/sbatch"
    error = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    folder.mkdir()
    (folder / "sbatch").write_text(
        f'#!/bin/sh\nif mkdir "{folder}/lost" 2>/dev/null; then\n'
        f'set -- {true} "$@"; {call} echo "{error}" >&2; exit 1\nfi\n'
        f'exec {true} "$@"\n'
    )
    (folder / "sbatch").chmod(0o755)
    return f"{folder}:{path}"


def kill_slurmd_shortly(site: Site) -> Tally:
    """Kill the daemons of all nodes; back in time, they cost nothing."""

    def harm(cluster: HarmedCluster, _: PatientRig) -> None:
        for node in (1, 2, 3):
            cluster.kill_slurmd(node)
        _wait(4.0)
        for node in (1, 2, 3):
            cluster.start_slurmd(node)

    return _run_cases(site, ((make_whole_gang(300), harm),))


def kill_slurmd(site: Site) -> Tally:
    """Kill the daemon of a node for good: Slurm gives the node up, and its processes run on."""
    return _lose_nodes(site, HarmedCluster.kill_slurmd)


def power_off_node(site: Site) -> Tally:
    """Switch a node off: it sends nothing any more, not even that it ends."""
    return _lose_nodes(site, HarmedCluster.power_off)


def cut_node_off(site: Site) -> Tally:
    """Cut the network of a node: the roles on both sides run on, until each side notices that it is alone."""
    return _lose_nodes(site, HarmedCluster.cut_link)


def _lose_nodes(site: Site, lose: Callable[[HarmedCluster, int], None]) -> Tally:
    """Lose the node of the supervisor, and another one, until the gang is over."""

    def harm_first(cluster: HarmedCluster, rig: PatientRig) -> None:
        lose(cluster, cluster.find_first_node(rig.server_id()))

    def harm_other(cluster: HarmedCluster, rig: PatientRig) -> None:
        lose(cluster, cluster.find_other_node(rig.server_id()))

    cases = (
        (make_retried_gang(**_SPARE), harm_first),
        (make_retried_gang(**_SPARE), harm_other),
        (make_lost_gang(), harm_other),
    )
    return _run_cases(site, cases, **_QUICK)


def power_cycle_node(site: Site) -> Tally:
    """Switch a node off and on within seconds, so that the controller may count the job as running."""

    def harm(cluster: HarmedCluster, node: int) -> None:
        cluster.power_off(node)
        _wait(2.0)
        cluster.power_on(node)

    return _lose_nodes(site, harm)


def cancel_step(site: Site) -> Tally:
    """Cancel the step of one role, which Slurm kills at once."""

    def harm(cluster: HarmedCluster, rig: PatientRig) -> None:
        job = cluster.find_job(rig.server_id())
        rows = cluster.ask("squeue", "--steps", "--noheader", f"--jobs={job}", "--format=%i %j").splitlines()
        (step,) = [row.split()[0] for row in rows if row.split()[1] == "worker.1"]
        cluster.ask("scancel", step)

    return _run_cases(site, ((make_lost_gang(), harm), (make_retried_gang(), harm)))


def cancel_job(site: Site) -> Tally:
    """Cancel the whole job, as an administrator does."""

    def harm(cluster: HarmedCluster, rig: PatientRig) -> None:
        cluster.ask("scancel", cluster.find_job(rig.server_id()))

    return _run_cases(site, ((make_lost_gang(), harm), (make_retried_gang(), harm)))


def preempt_job(site: Site) -> Tally:
    """Submit a job of higher priority that needs every node: the message says so, and another attempt follows it."""

    def harm(cluster: HarmedCluster, rig: PatientRig) -> None:
        cluster.ask("sbatch", "-p", "urgent", "-N3", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 8")
        rig.wait("the attempt is over", lambda: rig.state() != "RUNNING")

    def check(cluster: HarmedCluster, rig: PatientRig) -> None:
        harm(cluster, rig)
        message = rig.wait_closed("1")["message"]
        assert "preempted" in message, message

    cases = ((make_lost_gang(), check), (make_retried_gang(), harm))
    return _run_cases(site, cases, **_PREEMPTION)


def requeue_job(site: Site) -> Tally:
    """Requeue the job although it was submitted without: Slurm ends its roles, and starts it again in two minutes."""

    def harm(cluster: HarmedCluster, rig: PatientRig) -> None:
        job = cluster.find_job(rig.server_id())
        cluster.ask("scontrol", "update", f"jobid={job}", "requeue=1")
        cluster.ask("scontrol", "requeue", job)

    return _run_cases(site, ((make_lost_gang(), harm), (make_retried_gang(), harm)))


def suspend_job(site: Site) -> Tally:
    """Suspend the job for longer than its roles wait for each other: the gang goes on."""

    def harm(cluster: HarmedCluster, rig: PatientRig) -> None:
        job = cluster.find_job(rig.server_id())
        cluster.ask("scontrol", "suspend", job)
        _wait(_SUSPENDED)
        cluster.ask("scontrol", "resume", job)

    return _run_cases(site, ((make_whole_gang(100), harm),))


def fill_shared_folder(site: Site) -> Tally:
    """Fill the shared folder while a job runs: the log says what is lost, and the job goes on to its end."""
    run = "i=0; while [ $i -lt 200 ]; do echo word $i; i=$((i+1)); sleep 0.05; done"
    scene = Scene(write_solo(run), promised=False)
    with _open_small_shared_folder(site, 100) as (disk, rig):
        rig.submit(scene.config)
        # its build prints, too, and would fail on a full disk
        rig.wait("it prints", lambda: any("word 2" in line for line in rig.lines("1", follow=False)))
        with fill_disk(disk):
            _wait(4.0)
        return judge_gang(rig, scene)


def fill_shared_folder_before_start(site: Site) -> Tally:
    """Fill the shared folder before the start: the experiment fails at once, with the reason."""
    scene = Scene(write_solo("true"), "FAILED", frozenset({"START_FAILED", "BUILD_FAILED"}))
    with _open_small_shared_folder(site, 4) as (disk, rig), fill_disk(disk):
        rig.submit(scene.config)
        found = judge_gang(rig, scene)
        said = [rig.experiment("1")["message"], *rig.lines("1")]  # of the build, too
        return found if "No space left" in " ".join(said) else found + Tally(notes=tuple(said))


@contextmanager
def _open_small_shared_folder(site: Site, mebibytes: int) -> Iterator[tuple[Path, PatientRig]]:
    """Give a small file system and a server whose cluster shares it. It is mounted before the nodes start."""
    with (
        mount_small_disk(site, mebibytes) as disk,
        _open_cluster(site) as cluster,
        replace(site, cluster=cluster).rig() as rig,
    ):
        cluster.write_pool(rig.home, shared=disk / "shared")
        rig.start()
        yield disk, rig
