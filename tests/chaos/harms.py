"""Harm done on the host itself, behind the server's back, while jobs run."""

from __future__ import annotations

import itertools
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
from docker.errors import APIError

from riseml.executors.docker.labels import ENVIRONMENT
from tests.chaos.calls import DOCKER, through
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.proxy import Effect, Moment, Rule
from tests.chaos.scenes import Scene, again, counting, good, killed, lost, solo, trio
from tests.chaos.sites import Fault, Site
from tests.support.hosts import Engine, Machine
from tests.support.rig import BASE, HOG
from tests.support.waiting import wait_for

_JOBS = ("master", "worker.1", "ps.1")
_PAUSE = 2.0  # seconds
_WRITTEN_OFF = 180.0  # seconds; the server waits 60 for a network that cannot be removed

Harm = Callable[[PatientRig], None]


def host_faults() -> list[Fault]:
    """A row for each kind."""
    return [
        Fault("container removed behind our back", _removed),
        Fault("container killed behind our back", _killed),
        Fault("supervisor of a process killed", _supervisor_killed, ("process",)),
        Fault("container paused, then goes on", _paused),
        Fault("container paused and then killed by user", paused_and_killed),
        Fault("network removed under running jobs", _network_removed, DOCKER),
        Fault("network removed before the start", network_gone, DOCKER),
        Fault("network removed while the gang starts", _network_halfway, DOCKER),
        Fault("network that the engine cannot remove", network_held, DOCKER),
        Fault("image deleted between build and start", _image_gone, DOCKER),
        Fault("out of memory, each role", memory, DOCKER),
        Fault("a job that ignores SIGTERM", _deaf),
        Fault("disk of the output full, then free", _output_full),
        Fault("disk of the output full from the start", output_never),
        Fault("disk of the store full, then kill -9", store_full, DOCKER),
        Fault("clock set back and forth by an hour", clock),
    ]


def during(site: Site, scene: Scene, harm: Harm, injected: int = 1, **environment: str) -> Tally:
    """One experiment; the harm is done once all its jobs run and print."""
    with site.rig(**environment) as rig:
        rig.start()
        rig.submit(scene.config)
        rig.wait("it runs", lambda: rig.state() == "RUNNING")
        rig.wait("it prints", lambda: len(rig.lines("1", follow=False)) > 2)
        harm(rig)
        return judge(rig, scene, injected)


def _removed(site: Site) -> Tally:
    found = Tally()
    for job in _JOBS:
        for scene in (lost("VANISHED", "SIGNAL", "SERVICE_ENDED"), again()):
            found += removed(site, scene, job)
    return found


def removed(site: Site, scene: Scene, job: str) -> Tally:
    """Somebody removes a job while it runs."""
    return during(site, replace(scene, removed=job), lambda rig: rig.remove(job))


def _killed(site: Site) -> Tally:
    def kill(rig: PatientRig, job: str) -> None:
        if isinstance(rig.host, Engine):
            rig.host.api.kill(rig.host.find(rig.server_id(), job))
        else:
            _main(rig, job).kill()

    found = Tally()
    for job in _JOBS:
        found += during(site, lost("SIGNAL", "SERVICE_ENDED"), partial(kill, job=job))
        found += during(site, again(), partial(kill, job=job))
    return found


def _supervisor_killed(site: Site) -> Tally:
    def kill(rig: PatientRig, job: str) -> None:
        assert isinstance(rig.host, Machine), "processes have supervisors"
        supervisor = rig.host.supervisor(rig.host.find(job))
        assert supervisor is not None, "the job runs"
        supervisor.kill()

    found = Tally()
    for job in _JOBS:
        found += during(site, lost("SIGNAL", "SERVICE_ENDED"), partial(kill, job=job))
    return found


def _paused(site: Site) -> Tally:
    def hold(rig: PatientRig) -> None:
        for job in _JOBS:
            _pause(rig, job)
        threading.Event().wait(_PAUSE)
        for job in _JOBS:
            _resume(rig, job)

    return during(site, good(100), hold, len(_JOBS))


def paused_and_killed(site: Site) -> Tally:
    """SIGTERM and SIGKILL for jobs that stand still."""

    def hold(rig: PatientRig) -> None:
        for job in _JOBS:
            _pause(rig, job)
        assert rig.post("/v1/experiments/1/kill").status_code == 200

    return during(site, killed(), hold, len(_JOBS))


def _pause(rig: PatientRig, job: str) -> None:
    if isinstance(rig.host, Engine):
        engine, identity = rig.host, rig.host.find(rig.server_id(), job)
        rig.wait("it stands still", lambda: _freeze(engine, identity))
        return
    for process in _tree(rig, job):
        with suppress(psutil.NoSuchProcess):  # a child of the shell that ended just now
            process.suspend()


def _freeze(engine: Engine, identity: str) -> bool:
    """False when the kernel did not manage to in time, which it does not on a busy machine."""
    try:
        engine.api.pause(identity)
    except APIError as error:
        if "unable to freeze" not in str(error.explanation):
            raise
        return False
    return True


def _resume(rig: PatientRig, job: str) -> None:
    if isinstance(rig.host, Engine):
        rig.host.api.unpause(rig.host.find(rig.server_id(), job))
        return
    for process in _tree(rig, job):
        with suppress(psutil.NoSuchProcess):  # the first ones go on already, and end
            process.resume()


def _main(rig: PatientRig, job: str) -> psutil.Process:
    assert isinstance(rig.host, Machine), "a process of this machine"
    return psutil.Process(int(str(rig.host.state(job)["main"])))


def _tree(rig: PatientRig, job: str) -> list[psutil.Process]:
    main = _main(rig, job)
    return [main, *main.children(recursive=True)]


def _network_removed(site: Site) -> Tally:
    return during(site, good(40), _remove_network)


def _network_halfway(site: Site) -> Tally:
    """One job has started on it, and the next one is about to."""

    def harm(rig: PatientRig) -> list[Rule]:
        starts = itertools.count(1)

        def remove() -> Effect:
            if next(starts) == 2:
                _remove_network(rig)
            return Effect.PASS

        return [Rule(r"POST .*/containers/[^/]+/start", Moment.BEFORE, remove, times=2)]

    found = through(site, good(), harm)
    return replace(found, injected=found.experiments)


def _remove_network(rig: PatientRig) -> None:
    assert isinstance(rig.host, Engine), "an engine has networks"
    for name in rig.networks():
        for row in rig.host.api.inspect_network(name)["Containers"]:
            rig.host.api.disconnect_container_from_network(row, name, force=True)
        rig.host.api.remove_network(name)


def network_gone(site: Site) -> Tally:
    """It is removed once it was prepared; the first start meets that."""

    def harm(rig: PatientRig) -> list[Rule]:
        def remove() -> Effect:
            assert isinstance(rig.host, Engine), "an engine has networks"
            for name in rig.networks():
                rig.host.api.remove_network(name)
            return Effect.PASS

        return [Rule(r"POST .*/containers/create", Moment.BEFORE, remove)]

    return through(site, good(), harm)


def network_held(site: Site) -> Tally:
    """A container that riseml did not make holds the network: the experiment closes without it, and later it goes."""
    with site.rig() as rig:
        assert isinstance(rig.host, Engine), "an engine has networks"
        rig.start()
        rig.submit(good(200).config)
        rig.wait("it runs", lambda: rig.state() == "RUNNING")  # an earlier stranger may take a job's address
        (network,) = rig.networks()
        stranger = rig.host.api.create_container(BASE, ["sleep", "600"], host_config={"NetworkMode": network})["Id"]
        try:
            rig.host.api.start(stranger)
            wait_for("experiment 1 is closed", lambda: rig.experiment("1")["closed"], _WRITTEN_OFF, rig.last_words)
            rig.submit(good(40).config)
            rig.wait_closed("2")
        finally:
            rig.host.api.remove_container(stranger, force=True)
        rig.kill()
        rig.start()  # it asks the engine for news again, as after a restart of the engine
        rig.wait("the network is gone", lambda: not rig.networks())
        return judge(rig, good(200), 1) + judge(rig, good(40), 0, "2")


def _image_gone(site: Site) -> Tally:
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

    return through(site, good(install=[f"echo {mark}"]), harm)


def memory(site: Site) -> Tally:
    """The limit of one job is passed; what is told names that job and its memory."""
    found = Tally()
    for job in _JOBS:
        script = {"master": counting(10_000), "worker.1": counting(10_000), job: HOG}
        reason = "SERVICE_ENDED" if job.startswith("ps") else "OUT_OF_MEMORY"
        scene = Scene(trio(script, limits={"mem": "64MiB"}), "FAILED", frozenset({reason}))
        with site.rig() as rig:
            rig.live(scene)
            found += judge(rig, scene, 1)
            message = rig.experiment("1")["message"]
            if "out of memory" not in message:
                found += Tally(notes=(f"{job}: {message!r} does not tell of memory",))
    return found


def _deaf(site: Site) -> Tally:
    scene = killed()
    with site.rig() as rig:
        rig.live(scene)
        return judge(rig, scene, 1)


def _output_full(site: Site) -> Tally:
    """The job meets the full disk and goes on."""
    run = 'i=0; while [ $i -lt 60 ]; do echo line 1 $i; date > "$OUTPUT_DIR/now" || true; i=$((i+1)); sleep 0.05; done'
    with _small_disk(site, 4) as disk:

        def fill(_: PatientRig) -> None:
            with _filled(disk):
                threading.Event().wait(_PAUSE)

        return during(site, Scene(solo(run), lines={"train": 60}), fill, RISEML_OUTPUT=str(disk))


def output_never(site: Site) -> Tally:
    """No folder for the output: told at once, with the reason."""
    scene = Scene(solo("true"), "FAILED", frozenset({"START_FAILED"}))
    with _small_disk(site, 4) as disk, _filled(disk), site.rig(RISEML_OUTPUT=str(disk)) as rig:
        rig.live(scene)
        found = judge(rig, scene, 1)
        message = rig.experiment("1")["message"]
        return found if "No space left" in message else found + Tally(notes=(message,))


def store_full(site: Site) -> Tally:
    """Nothing can be written down for a while, neither rows nor logs; then the server is killed. What was acknowledged
    before and meanwhile is there afterwards, and ends well; what was refused was told why, and is not there.
    """
    with _small_disk(site, 24) as disk, Site(disk, site.engine).rig(RISEML_OUTPUT=str(site.home())) as rig:
        rig.start()
        scene, small = good(60), Scene(solo(counting(3)), lines={"train": 3})
        acknowledged = {rig.submit(scene.config)["id"]: scene}
        rig.wait("it runs", lambda: rig.state() == "RUNNING")
        submission = rig.submission(small.config)
        with _filled(disk):
            threading.Event().wait(_PAUSE / 2)
            answers = [rig.post("/v1/experiments", submission) for _ in range(8)]
            threading.Event().wait(_PAUSE / 2)
            rig.kill()
        rig.start()
        acknowledged |= {answer.json()["id"]: small for answer in answers if answer.status_code == 201}
        refused = [answer.text for answer in answers if answer.status_code != 201]
        known = {row["id"] for row in rig.get("/v1/experiments", all=True)["experiments"]}
        for name in acknowledged:
            rig.wait_closed(name)
        found = sum((judge(rig, one, 0, name) for name, one in acknowledged.items()), Tally(injected=2))
    notes = [text for text in refused if "its disk is full" not in text and "No space left" not in text]
    if not refused:
        notes.append("the disk was not full")
    if known != set(acknowledged):
        notes.append(f"{sorted(known)} are known, and {sorted(acknowledged)} were acknowledged")
    return found + Tally(notes=tuple(notes))


@contextmanager
def _small_disk(site: Site, mebibytes: int) -> Iterator[Path]:
    """A file system of its own."""
    place = site.folder / f"disk-{uuid.uuid4().hex[:8]}"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=755", "chaos", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def _filled(disk: Path) -> Iterator[None]:
    """To the last byte, for as long as the block lasts."""
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


def clock(site: Site) -> Tally:
    """The server's clock alone; the host's goes on."""

    def turn(rig: PatientRig) -> None:
        for offset in (-3600, 3600, 0):
            (rig.home / "clock").write_text(str(offset))
            threading.Event().wait(1.0)

    found = Tally()
    for scene in (good(80), killed()):
        with site.rig() as rig:
            rig.command = ("-m", "tests.chaos.server")
            rig.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
            rig.start()
            rig.submit(scene.config)
            rig.wait_state("1", "RUNNING")
            if scene.kill:
                rig.post("/v1/experiments/1/kill")
            turn(rig)
            found += judge(rig, scene, 3)
    return found
