"""Engines that die, end, hang and come back, while jobs run on them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import replace

from tests.chaos.dockerd import PrivateEngine, private_engine
from tests.chaos.harms import during
from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene, again, good, lost
from tests.chaos.sites import Fault, Site

_DOCKER = ("docker",)
_AWAY = 2.0  # seconds
_HANGS = 14.0  # seconds; the server waits 10 for a list

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


def _run(site: Site, cases: tuple[tuple[Scene, Harm], ...], *, live_restore: bool) -> Tally:
    assert site.engine is not None, "the base image comes from an engine"
    found = Tally()
    with private_engine(site.folder, site.engine, live_restore=live_restore) as engine:
        for scene, harm in cases:
            found += during(
                replace(site, engine=engine.url),
                scene,
                lambda rig, harm=harm: harm(engine, rig),  # type: ignore[misc]  # mypy infers no lambda with a default
            )
    return found
