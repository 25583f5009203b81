"""Engines that die, end, hang and come back, while jobs run on them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import docker

from tests.chaos.crashes import survive
from tests.chaos.dockerd import PrivateEngine, empty_engine, private_engine
from tests.chaos.harms import during
from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import GO, Scene, again, good, lost, on_call
from tests.chaos.sites import Fault, Site
from tests.support.registry import running_registry
from tests.support.rig import BASE

_DOCKER = ("docker",)
_AWAY = 2.0  # seconds
_HANGS = 14.0  # seconds; the server waits 10 for a list
_INSTANTS = (0.0, 0.03)  # seconds between the word that ends the jobs and the end of their engine
_FETCHES = 3  # deaths during a pull, at least: how many lines it has depends on the layers

Harm = Callable[[PrivateEngine, PatientRig], None]


def engine_faults() -> list[Fault]:
    """A row for each kind."""
    return [
        Fault("dockerd kill -9, live-restore", _survived(signal.SIGKILL), _DOCKER),
        Fault("dockerd SIGTERM, live-restore", _survived(signal.SIGTERM), _DOCKER),
        Fault("dockerd kill -9, no live-restore", _fatal(signal.SIGKILL), _DOCKER),
        Fault("dockerd SIGTERM, no live-restore", _fatal(signal.SIGTERM), _DOCKER),
        Fault("dockerd stopped for 14 s (SIGSTOP)", _hung, _DOCKER),
        Fault("dockerd and server kill -9 at once", _both, _DOCKER),
        Fault("dockerd kill -9 while jobs end", ending, _DOCKER),
        Fault("kill -9 while an image is fetched", fetching, _DOCKER),
    ]


def _restart(number: int) -> Harm:
    def harm(engine: PrivateEngine, _: PatientRig) -> None:
        engine.end(number)
        threading.Event().wait(_AWAY)
        engine.start()

    return harm


def _survived(number: int) -> Callable[[Site], Tally]:
    """Jobs run on; nobody sees more than a pause."""

    def inflict(site: Site) -> Tally:
        return _run(site, ((good(200), _restart(number)), (good(120), _restart(number))), live_restore=True)

    return inflict


def _fatal(number: int) -> Callable[[Site], Tally]:
    """Jobs end with their engine, which is no fault of theirs: another attempt where one is allowed."""

    def inflict(site: Site) -> Tally:
        scenes = (lost("ENGINE_STOPPED"), again(retry={"max": 1, "on": ["host-lost"]}))
        return _run(site, tuple((scene, _restart(number)) for scene in scenes), live_restore=False)

    return inflict


def killed_and_back(site: Site) -> Tally:
    """Jobs run on under an engine that has `live-restore`, and end with one that has not: one engine, two settings."""
    return _survived(signal.SIGKILL)(site) + _fatal(signal.SIGKILL)(site)


def _hung(site: Site) -> Tally:
    def harm(engine: PrivateEngine, _: PatientRig) -> None:
        engine.signal(signal.SIGSTOP)
        threading.Event().wait(_HANGS)
        engine.signal(signal.SIGCONT)

    return _run(site, ((good(60), harm),), live_restore=True)


def _both(site: Site) -> Tally:
    def harm(engine: PrivateEngine, rig: PatientRig) -> None:
        rig.kill()
        _restart(signal.SIGKILL)(engine, rig)
        rig.start()

    return _run(site, ((good(120), harm),), live_restore=True)


def ending(site: Site) -> Tally:
    """The jobs are told to end, and the engine dies within the same instants. Back again, it may not know how a job
    ended: then it is tried once more, and no code is made up.
    """

    def cut(after: float) -> Harm:
        def harm(engine: PrivateEngine, rig: PatientRig) -> None:
            (starts,) = Path(rig.home, "output").rglob("starts")
            starts.with_name(GO).touch()
            threading.Event().wait(after)
            _restart(signal.SIGKILL)(engine, rig)

        return harm

    cases = tuple((on_call(code), cut(after)) for after in _INSTANTS for code in (0, 3))
    return _run(site, cases, live_restore=True)


def fetching(site: Site) -> Tally:
    """A real pull from a registry into an engine that has nothing: before it is asked for, and as its layers come."""
    assert site.engine is not None, "the image comes from an engine"
    with (
        running_registry(site.folder) as address,
        _published(site.engine, address) as image,
        empty_engine(site.folder, live_restore=True) as engine,
    ):
        found = survive(replace(site, engine=engine.url), good(image=image), ["P15", "P14:1", "P14:2", "P14:3"])
    few = found.injected < _FETCHES
    return found + Tally(notes=(f"died {found.injected} times only",)) if few else found


@contextmanager
def _published(engine: str, registry: str) -> Iterator[str]:
    """The base image in a registry, under a name that no engine has."""
    repository = f"{registry}/chaos"
    with docker.APIClient(base_url=engine, version="auto", timeout=120) as api:
        api.tag(BASE, repository, "1")
        try:
            refused = [line for line in api.push(repository, "1", stream=True, decode=True) if "error" in line]
            assert not refused, refused
        finally:
            api.remove_image(f"{repository}:1")
    yield f"{repository}:1"


def _run(site: Site, cases: tuple[tuple[Scene, Harm], ...], *, live_restore: bool) -> Tally:
    assert site.engine is not None, "the base image comes from an engine"
    found = Tally()
    with private_engine(site.folder, site.engine, live_restore=live_restore) as engine:
        for scene, harm in cases:
            found += during(replace(site, engine=engine.url), scene, partial(harm, engine))
    return found
