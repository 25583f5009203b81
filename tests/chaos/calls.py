"""What can go wrong between the server and its engine: every call may be cut, lost, refused, slow, or the last one."""

from __future__ import annotations

import os
import signal
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.proxy import Effect, Moment, Proxy, Rule
from tests.chaos.scenes import Scene, again, bad, good, killed, lost
from tests.chaos.sites import Fault, Site

DOCKER = ("docker",)
_MUTATING = (
    r"POST .*/networks/create",
    r"POST .*/containers/create",
    r"PUT .*/archive",
    r"POST .*/containers/[^/]+/start",
    r"POST .*/kill",
    r"DELETE .*/containers/",
    r"DELETE .*/networks/",
)
_READING = (r"GET .*/containers/json", r"GET .*/containers/[^/]+/json", r"GET .*/networks", r"GET .*/logs")
_BUILD = r"POST .*/build"
_LOST_AFTER = 8.0  # seconds; several times what a busy machine may take to answer
_HANGS = 12.0  # seconds; the server waits 10 for a list

Harm = Callable[[PatientRig], list[Rule]]


def call_faults() -> list[Fault]:
    """A row for each way."""
    return [
        Fault("kill -9 before and after each engine call", _kill, DOCKER),
        Fault("call cut before the engine has it", _cut(Moment.BEFORE), DOCKER),
        Fault("answer lost after the engine did it", _cut(Moment.AFTER), DOCKER),
        Fault("engine refuses for a while (500)", _refuse, DOCKER),
        Fault("log stream cut at every piece", cut_stream(r"GET .*/logs", 25), DOCKER),
        Fault("stream of events cut at every piece", cut_stream(r"GET .*/events", 25), DOCKER),
        Fault("no events at all", _no_events, DOCKER),
        Fault("engine slow: every call 0.3 s late", _slow, DOCKER),
        Fault("engine hangs for 12 s", _hang, DOCKER),
        Fault("engine silent beyond lost_after", _silence, DOCKER),
    ]


def through(site: Site, scene: Scene, harm: Harm, **environment: str) -> Tally:
    """One experiment whose server reaches the engine through a proxy with these rules; each rule's use counts."""
    assert site.engine is not None, "an engine is harmed"
    with site.rig(**environment) as rig:
        rules = harm(rig)
        door = site.folder / f"{uuid.uuid4().hex[:8]}.sock"
        with Proxy(door, site.engine, *rules) as proxy:
            rig.environment["DOCKER_HOST"] = proxy.url
            rig.live(scene)
            if not scene.promised:
                rig.wait("what came back with its host is gone", lambda: not (rig.containers() or rig.networks()))
            return judge(rig, scene, sum(rule.done for rule in rules))


def kill_around(rig: PatientRig) -> list[Rule]:
    """The server dies before and after each kind of call, once each."""

    def end() -> Effect:
        assert rig.process is not None, "a call comes from a server"
        os.kill(rig.process.pid, signal.SIGKILL)
        return Effect.CUT

    moments = (Moment.BEFORE, Moment.AFTER)
    return [Rule(call, moment, end) for call in (*_MUTATING, *_READING, _BUILD) for moment in moments]


def cut_around(_: PatientRig) -> list[Rule]:
    """Each kind of call fails twice before the engine has it, and twice after the engine did it."""
    moments = (Moment.BEFORE, Moment.AFTER)
    return [Rule(call, moment, lambda: Effect.CUT, times=2) for call in _MUTATING for moment in moments]


def _kill(site: Site) -> Tally:
    scenes = (bad(), killed(), good(install=[f"echo {uuid.uuid4().hex}"]))  # the last one makes every call of `good`
    return sum((through(site, scene, kill_around) for scene in scenes), Tally())


def _cut(moment: Moment) -> Callable[[Site], Tally]:
    def inflict(site: Site) -> Tally:
        def harm(_: PatientRig) -> list[Rule]:
            return [Rule(call, moment, lambda: Effect.CUT, times=2) for call in _MUTATING]

        return sum((through(site, scene, harm) for scene in (good(), bad(), killed())), Tally())

    return inflict


def _refuse(site: Site) -> Tally:
    def harm(_: PatientRig) -> list[Rule]:
        return [Rule(call, Moment.BEFORE, lambda: Effect.REFUSE, times=2) for call in _MUTATING]

    return sum((through(site, scene, harm) for scene in (good(), bad(), killed())), Tally())


def cut_stream(pattern: str, times: int) -> Callable[[Site], Tally]:
    """The stream breaks after each of its pieces, so often."""

    def inflict(site: Site) -> Tally:
        return through(site, good(60), lambda _: [Rule(pattern, Moment.DURING, lambda: Effect.CUT, times)])

    return inflict


def _no_events(site: Site) -> Tally:
    scenes = (good(), bad(), killed())
    rules = [Rule(r"GET .*/events", Moment.BEFORE, lambda: Effect.CUT, times=None) for _ in scenes]
    pairs = zip(scenes, rules, strict=True)
    return sum((through(site, scene, partial(_one, rule)) for scene, rule in pairs), Tally())


def _one(rule: Rule, _: PatientRig) -> list[Rule]:
    return [rule]


def _slow(site: Site) -> Tally:
    def wait() -> Effect:
        threading.Event().wait(0.3)
        return Effect.PASS

    def harm(_: PatientRig) -> list[Rule]:
        return [Rule(r".", Moment.BEFORE, wait, times=None)]

    found = sum((through(site, scene, harm) for scene in (good(), bad(), killed())), Tally())
    return _once(found)


def _hang(site: Site) -> Tally:
    """Every call that comes within that time waits for its end."""

    def harm(_: PatientRig) -> list[Rule]:
        over = threading.Event()

        begun = threading.Event()

        def begin() -> Effect:
            if not begun.is_set():
                begun.set()
                threading.Timer(_HANGS, over.set).start()
            return wait()

        def wait() -> Effect:
            if begun.is_set():
                over.wait(_HANGS)
            return Effect.PASS

        return [Rule(r"POST .*/start", Moment.BEFORE, begin, 3), Rule(r".", Moment.AFTER, wait, None)]

    return _once(through(site, good(), harm))


def _silence(site: Site) -> Tally:
    """The host is lost, and comes back with what still runs there: the old attempt ends before a new one starts.

    What the jobs print while nobody hears of their host is not promised.
    """
    found = Tally()
    twice = again(retry=5)  # a busy machine may be silent once more
    for scene in (replace(lost("HOST_LOST"), promised=False), replace(twice, promised=False, attempts=None)):
        back = threading.Event()

        def cut(back: threading.Event = back) -> Effect:
            return Effect.PASS if back.is_set() else Effect.CUT

        def harm(rig: PatientRig, cut: Callable[[], Effect] = cut, back: threading.Event = back) -> list[Rule]:
            back.set()
            threading.Thread(target=_go_silent, args=(rig, back), daemon=True).start()
            return [Rule(r".", moment, cut, times=None) for moment in (Moment.BEFORE, Moment.DURING)]

        found += _once(through(site, scene, harm, RISEML_LOST_AFTER=str(_LOST_AFTER)))
    return found


def _go_silent(rig: PatientRig, back: threading.Event) -> None:
    """Silent from the moment at which the experiment runs, until the host is taken for lost."""
    rig.wait("its output is there", lambda: list(Path(rig.home, "output").rglob("starts")))
    rig.wait("it runs", lambda: rig.state() == "RUNNING")
    back.clear()
    rig.wait("the host is lost", lambda: rig.state() not in ("RUNNING", ""))
    threading.Event().wait(_LOST_AFTER)
    back.set()


def _once(found: Tally) -> Tally:
    """One harm an experiment, however many calls it took."""
    return Tally(found.experiments, found.experiments, found.right, found.left, found.lost, found.repeated, found.notes)
