"""Faults of engines while jobs run on them: they die, end, hang, and come back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import docker

from tests.chaos.crashes import run_with_crashes
from tests.chaos.dockerd import PrivateEngine, empty_engine, private_engine
from tests.chaos.harms import harm_running_experiment
from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import (
    GO,
    Scene,
    make_good_scene,
    make_lost_scene,
    make_open_scene,
    make_retried_scene,
    make_signalled_scene,
)
from tests.chaos.sites import Fault, Site
from tests.support.registry import running_registry
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE

_DOCKER = ("docker",)
_AWAY = 2.0  # seconds
_HANGS = 14.0  # seconds; the server waits 10 for a list
_INSTANTS = (0.0, 0.03)  # seconds between the end of the jobs and the end of their engine
_FETCHES = 3  # least deaths of the server during a pull; its number of progress lines depends on the layers

Harm = Callable[[PrivateEngine, PatientRig], None]


def engine_faults() -> list[Fault]:
    """Return a fault for each kind."""
    return [
        Fault("dockerd kill -9, live-restore", _restart_with_live_restore(signal.SIGKILL), _DOCKER),
        Fault("dockerd SIGTERM, live-restore", _restart_with_live_restore(signal.SIGTERM), _DOCKER),
        Fault("dockerd kill -9, no live-restore", _restart_without_live_restore(signal.SIGKILL), _DOCKER),
        Fault("dockerd SIGTERM, no live-restore", _restart_without_live_restore(signal.SIGTERM), _DOCKER),
        Fault("dockerd stopped for 14 s (SIGSTOP)", _stop_engine, _DOCKER),
        Fault("dockerd and server kill -9 at once", _kill_engine_and_server, _DOCKER),
        Fault("dockerd kill -9 while jobs end", kill_engine_while_jobs_end, _DOCKER),
        Fault("kill -9 while an image is fetched", kill_server_while_fetching, _DOCKER),
    ]


def restart_engine(engine: PrivateEngine, number: int) -> None:
    """End an engine with this signal, and start it again when its containerd has ended, too."""
    engine.end(number)
    threading.Event().wait(_AWAY)
    engine.start()


def _make_restart(number: int) -> Harm:
    return lambda engine, _: restart_engine(engine, number)


def _restart_with_live_restore(number: int) -> Callable[[Site], Tally]:
    """Return a fault that restarts an engine with `live-restore`: jobs go on, and users see a pause at most."""

    def inflict(site: Site) -> Tally:
        case = (replace(make_open_scene(), dropped=int(number == signal.SIGKILL)), _make_restart(number))
        return _run_cases(site, (case, case), live_restore=True)

    return inflict


def _restart_without_live_restore(number: int) -> Callable[[Site], Tally]:
    """Return a fault that restarts an engine without `live-restore`: jobs end with it, and are retried if allowed."""

    def inflict(site: Site) -> Tally:
        scenes = (make_lost_scene("ENGINE_STOPPED"), make_retried_scene(retry={"max": 1, "on": ["host-lost"]}))
        return _run_cases(site, tuple((scene, _make_restart(number)) for scene in scenes), live_restore=False)

    return inflict


def kill_and_restart_engine(site: Site) -> Tally:
    """Kill and restart an engine with `live-restore`, under which jobs go on, and one without, with which they end."""
    return _restart_with_live_restore(signal.SIGKILL)(site) + _restart_without_live_restore(signal.SIGKILL)(site)


def _stop_engine(site: Site) -> Tally:
    def harm(engine: PrivateEngine, _: PatientRig) -> None:
        engine.signal(signal.SIGSTOP)
        threading.Event().wait(_HANGS)
        engine.signal(signal.SIGCONT)

    return _run_cases(site, ((make_open_scene(), harm),), live_restore=True)


def _kill_engine_and_server(site: Site) -> Tally:
    def harm(engine: PrivateEngine, rig: PatientRig) -> None:
        rig.kill()
        _make_restart(signal.SIGKILL)(engine, rig)
        rig.start()

    return _run_cases(site, ((replace(make_open_scene(), dropped=1), harm),), live_restore=True)


def kill_engine_while_jobs_end(site: Site) -> Tally:
    """Kill the engine at the moment at which the jobs end.

    The restarted engine may not know the exit code of a job: then riseml retries and does not invent a code.
    """

    def cut(after: float) -> Harm:
        def harm(engine: PrivateEngine, rig: PatientRig) -> None:
            (starts,) = Path(rig.home, "output").rglob("starts")
            starts.with_name(GO).touch()
            threading.Event().wait(after)
            _make_restart(signal.SIGKILL)(engine, rig)

        return harm

    cases = tuple((make_signalled_scene(code), cut(after)) for after in _INSTANTS for code in (0, 3))
    return _run_cases(site, cases, live_restore=True)


def kill_server_while_fetching(site: Site) -> Tally:
    """Kill the server before and during a real pull from a registry into an engine without images."""
    assert site.engine is not None, "the image comes from an engine"
    with (
        running_registry(site.folder) as address,
        _publish_base(site.engine, address) as image,
        empty_engine(site.folder, live_restore=True) as engine,
    ):
        found = run_with_crashes(
            replace(site, engine=engine.url), make_good_scene(image=image), ["P15", "P14:1", "P14:2", "P14:3"]
        )
    few = found.injected < _FETCHES
    return found + Tally(notes=(f"died {found.injected} times only",)) if few else found


@contextmanager
def _publish_base(engine: str, registry: str) -> Iterator[str]:
    """Push the base image to a registry under a name that no engine has, and give that name."""
    repository = f"{registry}/chaos"
    with docker.APIClient(base_url=engine, version="auto", timeout=DEADLINE) as api:
        api.tag(BASE, repository, "1")
        try:
            refused = [line for line in api.push(repository, "1", stream=True, decode=True) if "error" in line]
            assert not refused, refused
        finally:
            api.remove_image(f"{repository}:1")
    yield f"{repository}:1"


def _run_cases(site: Site, cases: tuple[tuple[Scene, Harm], ...], *, live_restore: bool) -> Tally:
    assert site.engine is not None, "the base image comes from an engine"
    found = Tally()
    with private_engine(site.folder, site.engine, live_restore=live_restore) as engine:
        for scene, harm in cases:
            found += harm_running_experiment(replace(site, engine=engine.url), scene, partial(harm, engine))
    return found
