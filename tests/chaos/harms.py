"""Faults made directly on a host, without the server, while jobs run."""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
from docker.errors import APIError

from riseml.executors.docker.labels import ENVIRONMENT
from tests.chaos.calls import DOCKER, run_through_proxy
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.proxy import Effect, Moment, Rule
from tests.chaos.scenes import (
    Scene,
    count_lines,
    make_good_scene,
    make_killed_scene,
    make_lost_scene,
    make_open_scene,
    make_retried_scene,
    write_solo,
    write_trio,
)
from tests.chaos.sites import Fault, Site
from tests.support.disks import mount_disk
from tests.support.hosts import Engine, Machine
from tests.support.rig import BASE, HOG

_JOBS = ("master", "worker.1", "ps.1")
_PAUSE = 2.0  # seconds

Harm = Callable[[PatientRig], None]


def host_faults() -> list[Fault]:
    """Return a fault for each kind."""
    return [
        Fault("container removed by another program", _remove_each_job),
        Fault("container killed by another program", _kill_each_job),
        Fault("supervisor of a process killed", _kill_each_supervisor, ("process",)),
        Fault("container paused, then goes on", _pause_and_resume_jobs),
        Fault("container paused and then killed by user", kill_paused_jobs),
        Fault("network removed under running jobs", _remove_used_network, DOCKER),
        Fault("network removed before the start", remove_network_before_start, DOCKER),
        Fault("network removed while the gang starts", _remove_network_between_starts, DOCKER),
        Fault("network that the engine cannot remove", hold_network, DOCKER),
        Fault("image deleted between build and start", _delete_image_before_start, DOCKER),
        Fault("out of memory, each role", exceed_memory, DOCKER),
        Fault("a job that ignores SIGTERM", _ignore_sigterm),
        Fault("disk of the output full, then free", _fill_output_for_a_while),
        Fault("disk of the output full from the start", fill_output_before_start),
        Fault("disk of the store full, then kill -9", fill_store, DOCKER),
        Fault("disk of the store filled by a job, then a kill", kill_on_full_disk),
        Fault("clock set back and forth by an hour", turn_clock),
    ]


def harm_running_experiment(site: Site, scene: Scene, harm: Harm, injected: int = 1, **environment: str) -> Tally:
    """Run one experiment, and call `harm` once all its jobs run and print; then those of an open scene end."""
    with site.rig(**environment) as rig:
        rig.start()
        rig.submit(scene.config)
        rig.wait("it runs", lambda: rig.state() == "RUNNING")
        rig.wait("it prints", lambda: len(rig.lines("1", follow=False)) > 2)
        harm(rig)
        rig.let_go()
        return judge(rig, scene, injected)


def _remove_each_job(site: Site) -> Tally:
    found = Tally()
    for job in _JOBS:
        for scene in (make_lost_scene("VANISHED", "SIGNAL", "SERVICE_ENDED"), make_retried_scene()):
            found += remove_running_job(site, scene, job)
    return found


def remove_running_job(site: Site, scene: Scene, job: str) -> Tally:
    """Remove a job from its host while it runs."""
    return harm_running_experiment(site, replace(scene, removed=job), lambda rig: rig.remove(job))


def _kill_each_job(site: Site) -> Tally:
    def kill(rig: PatientRig, job: str) -> None:
        if isinstance(rig.host, Engine):
            rig.host.api.kill(rig.host.find(rig.server_id(), job))
        else:
            _find_main_process(rig, job).kill()

    found = Tally()
    for job in _JOBS:
        found += harm_running_experiment(site, make_lost_scene("SIGNAL", "SERVICE_ENDED"), partial(kill, job=job))
        found += harm_running_experiment(site, make_retried_scene(), partial(kill, job=job))
    return found


def _kill_each_supervisor(site: Site) -> Tally:
    def kill(rig: PatientRig, job: str) -> None:
        assert isinstance(rig.host, Machine), "processes have supervisors"
        supervisor = rig.host.supervisor(rig.host.find(job))
        assert supervisor is not None, "the job runs"
        supervisor.kill()

    found = Tally()
    for job in _JOBS:
        found += harm_running_experiment(site, make_lost_scene("SIGNAL", "SERVICE_ENDED"), partial(kill, job=job))
    return found


def _pause_and_resume_jobs(site: Site) -> Tally:
    def hold(rig: PatientRig) -> None:
        for job in _JOBS:
            _pause_job(rig, job)
        threading.Event().wait(_PAUSE)
        for job in _JOBS:
            _resume_job(rig, job)

    return harm_running_experiment(site, make_open_scene(), hold, len(_JOBS))


def kill_paused_jobs(site: Site) -> Tally:
    """Kill an experiment whose jobs are paused."""

    def hold(rig: PatientRig) -> None:
        for job in _JOBS:
            _pause_job(rig, job)
        assert rig.post("/v1/experiments/1/kill").status_code == 200

    return harm_running_experiment(site, make_killed_scene(), hold, len(_JOBS))


def _pause_job(rig: PatientRig, job: str) -> None:
    if isinstance(rig.host, Engine):
        engine, identity = rig.host, rig.host.find(rig.server_id(), job)
        rig.wait("the job is paused", lambda: _try_to_pause(engine, identity))
        return
    for process in _find_process_tree(rig, job):
        with suppress(psutil.NoSuchProcess):  # a child of the shell that has just ended
            process.suspend()


def _try_to_pause(engine: Engine, identity: str) -> bool:
    """Return False when the kernel could not freeze the container in time, as happens on a busy machine."""
    try:
        engine.api.pause(identity)
    except APIError as error:
        if "unable to freeze" not in str(error.explanation):
            raise
        return False
    return True


def _resume_job(rig: PatientRig, job: str) -> None:
    if isinstance(rig.host, Engine):
        rig.host.api.unpause(rig.host.find(rig.server_id(), job))
        return
    for process in _find_process_tree(rig, job):
        with suppress(psutil.NoSuchProcess):  # a child that ended after its parent was resumed
            process.resume()


def _find_main_process(rig: PatientRig, job: str) -> psutil.Process:
    assert isinstance(rig.host, Machine), "a process of this machine"
    return psutil.Process(int(str(rig.host.state(job)["main"])))


def _find_process_tree(rig: PatientRig, job: str) -> list[psutil.Process]:
    main = _find_main_process(rig, job)
    return [main, *main.children(recursive=True)]


def _remove_used_network(site: Site) -> Tally:
    return harm_running_experiment(site, make_open_scene(), _remove_network)


def _remove_network_between_starts(site: Site) -> Tally:
    """Remove the network after the first job of a gang has started and before the second one starts."""

    def harm(rig: PatientRig) -> list[Rule]:
        starts = itertools.count(1)

        def remove() -> Effect:
            if next(starts) == 2:
                _remove_network(rig)
            return Effect.PASS

        return [Rule(r"POST .*/containers/[^/]+/start", Moment.BEFORE, remove, times=2)]

    found = run_through_proxy(site, make_good_scene(), harm)
    return replace(found, injected=found.experiments)


def _remove_network(rig: PatientRig) -> None:
    assert isinstance(rig.host, Engine), "an engine has networks"
    for name in rig.networks():
        for row in rig.host.api.inspect_network(name)["Containers"]:
            rig.host.api.disconnect_container_from_network(row, name, force=True)
        rig.host.api.remove_network(name)


def remove_network_before_start(site: Site) -> Tally:
    """Remove the network after it was prepared and before the first job is created."""

    def harm(rig: PatientRig) -> list[Rule]:
        def remove() -> Effect:
            assert isinstance(rig.host, Engine), "an engine has networks"
            for name in rig.networks():
                rig.host.api.remove_network(name)
            return Effect.PASS

        return [Rule(r"POST .*/containers/create", Moment.BEFORE, remove)]

    return run_through_proxy(site, make_good_scene(), harm)


def hold_network(site: Site) -> Tally:
    """Connect a foreign container to the network of an experiment: it closes, and the network goes later."""
    with site.rig() as rig:
        assert isinstance(rig.host, Engine), "an engine has networks"
        rig.start()
        rig.submit((scene := make_open_scene()).config)
        rig.wait_state("1", "RUNNING")  # earlier, the foreign container could take a job's address
        (network,) = rig.networks()
        foreign = rig.host.api.create_container(BASE, ["sleep", "600"], host_config={"NetworkMode": network})["Id"]
        try:
            rig.host.api.start(foreign)
            rig.let_go()
            rig.wait_closed("1")  # the server waits 60 s before it writes off a network
            rig.submit(make_good_scene(40).config)
            rig.wait_closed("2")
        finally:
            rig.host.api.remove_container(foreign, force=True)
        rig.kill()
        rig.start()  # it removes the network when it connects to the engine, as after a restart of the engine
        rig.wait("the network is gone", lambda: not rig.networks())
        return judge(rig, scene, 1) + judge(rig, make_good_scene(40), 0, "2")


def _delete_image_before_start(site: Site) -> Tally:
    mark = uuid.uuid4().hex

    def harm(rig: PatientRig) -> list[Rule]:
        def remove() -> Effect:
            assert isinstance(rig.host, Engine), "an engine has images"
            for image in rig.host.api.images(filters={"label": ENVIRONMENT}):
                history = str(rig.host.api.history(image["Id"]))
                if mark in history:
                    rig.host.api.remove_image(image["Id"], force=True)
            return Effect.PASS

        return [Rule(r"POST .*/containers/create", Moment.BEFORE, remove)]

    return run_through_proxy(site, make_good_scene(install=[f"echo {mark}"]), harm)


def exceed_memory(site: Site) -> Tally:
    """Let one job exceed its memory limit: the message names the job and its memory."""
    found = Tally()
    for job in _JOBS:
        script = {"master": count_lines(10_000), "worker.1": count_lines(10_000), job: HOG}
        reason = "SERVICE_ENDED" if job.startswith("ps") else "OUT_OF_MEMORY"
        scene = Scene(write_trio(script, limits={"mem": "64MiB"}), "FAILED", frozenset({reason}))
        with site.rig() as rig:
            rig.run_scene(scene)
            found += judge(rig, scene, 1)
            message = rig.experiment("1")["message"]
            if "out of memory" not in message:
                found += Tally(notes=(f"{job}: {message!r} does not mention memory",))
    return found


def _ignore_sigterm(site: Site) -> Tally:
    scene = make_killed_scene()
    with site.rig() as rig:
        rig.run_scene(scene)
        return judge(rig, scene, 1)


def _fill_output_for_a_while(site: Site) -> Tally:
    """Fill the disk of the output for a while: the job gets errors and goes on."""
    run = 'i=0; while [ $i -lt 60 ]; do echo line 1 $i; date > "$OUTPUT_DIR/now" || true; i=$((i+1)); sleep 0.05; done'
    with mount_small_disk(site, 4) as disk:

        def fill(_: PatientRig) -> None:
            with fill_disk(disk):
                threading.Event().wait(_PAUSE)

        return harm_running_experiment(site, Scene(write_solo(run), lines={"train": 60}), fill, RISEML_OUTPUT=str(disk))


def fill_output_before_start(site: Site) -> Tally:
    """Fill the disk of the output before the start: the experiment fails at once, with the reason."""
    scene = Scene(write_solo("true"), "FAILED", frozenset({"START_FAILED"}))
    with mount_small_disk(site, 4) as disk, fill_disk(disk), site.rig(RISEML_OUTPUT=str(disk)) as rig:
        rig.run_scene(scene)
        found = judge(rig, scene, 1)
        message = rig.experiment("1")["message"]
        return found if "No space left" in message else found + Tally(notes=(message,))


def fill_store(site: Site) -> Tally:
    """Fill the disk of the store, so that neither rows nor logs can be written, then kill the server.

    Every acknowledged experiment is in the store afterwards and finishes; every refused one got the reason and is not
    in the store.
    """
    with (
        mount_small_disk(site, 24) as disk,
        Site(disk, site.engine).rig(RISEML_OUTPUT=str(site.home()), RISEML_DATA=str(site.folder)) as rig,
    ):
        rig.start()
        scene, small = make_open_scene(), Scene(write_solo(count_lines(3)), lines={"train": 3})
        acknowledged = {rig.submit(scene.config)["id"]: scene}
        rig.wait("it runs", lambda: rig.state() == "RUNNING")
        submission = rig.submission(small.config)
        with fill_disk(disk):
            threading.Event().wait(_PAUSE / 2)
            answers = [rig.post("/v1/experiments", submission) for _ in range(8)]
            threading.Event().wait(_PAUSE / 2)
            rig.kill()
        rig.start()
        rig.let_go()
        acknowledged |= {answer.json()["id"]: small for answer in answers if answer.status_code == 201}
        refused = [answer.text for answer in answers if answer.status_code != 201]
        known = {row["id"] for row in rig.get("/v1/experiments", all=True)["experiments"]}
        for name in acknowledged:
            rig.wait_closed(name)
        found = sum((judge(rig, one, 0, name) for name, one in acknowledged.items()), Tally(injected=2))
    full = ("its disk is full", "No space left", "free some space")
    notes = [text for text in refused if not any(words in text for words in full)]
    if not refused:
        notes.append("no submit was refused: the disk was not full")
    if known != set(acknowledged):
        notes.append(f"{sorted(known)} are known, and {sorted(acknowledged)} were acknowledged")
    return found + Tally(notes=tuple(notes))


def mount_small_disk(site: Site, mebibytes: int) -> AbstractContextManager[Path]:
    """Mount a small file system, and give its folder."""
    return mount_disk(site.folder, mebibytes)


def kill_on_full_disk(site: Site) -> Tally:
    """Kill an experiment whose job has filled the disk of the store and takes every byte that becomes free."""
    fill = 'cd "$OUTPUT_DIR"; while :; do dd if=/dev/zero bs=64k 2>/dev/null >>big || :; sleep 0.02; done'
    scene = replace(make_killed_scene(), config=write_solo(fill), lines={}, kill=False)
    with mount_small_disk(site, 40) as disk, Site(disk, site.engine).rig() as rig:
        rig.start()
        another = rig.submission(make_good_scene().config)
        rig.submit(scene.config)
        rig.wait("the disk is full", lambda: not os.statvfs(disk).f_bavail)
        refused = rig.post("/v1/experiments", another)
        assert rig.post("/v1/experiments/1/kill").status_code == 200
        rig.wait("it is killed", lambda: rig.state() == "KILLED")
        assert rig.post("/v1/files/remove?root=output&of=1&path=big").status_code == 200
        notes = () if refused.status_code != 201 else ("a submit was accepted: the disk was not full",)
        return judge(rig, scene, 1) + Tally(notes=notes)


@contextmanager
def fill_disk(disk: Path) -> Iterator[None]:
    """Fill a file system to the last byte until the block ends."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError as error:
                if error.errno != 28:
                    raise
    try:
        yield
    finally:
        ballast.unlink()


def turn_clock(site: Site) -> Tally:
    """Change the server's clock; the host's clock stays right."""

    def turn(rig: PatientRig) -> None:
        for offset in (-3600, 3600, 0):
            (rig.home / "clock").write_text(str(offset))
            threading.Event().wait(1.0)

    found = Tally()
    for scene in (make_open_scene(), make_killed_scene()):
        with site.rig() as rig:
            rig.command = ("-m", "tests.chaos.server")
            rig.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
            rig.start()
            rig.submit(scene.config)
            rig.wait_state("1", "RUNNING")
            if scene.kill:
                rig.post("/v1/experiments/1/kill")
            turn(rig)
            rig.let_go()
            found += judge(rig, scene, 3)
    return found
