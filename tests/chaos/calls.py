"""Faults between the server and its engine: calls are cut, lost, refused or slow, or the server dies during a call."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from riseml.base.faultpoints import Point
from tests.chaos.ledger import Tally, judge
from tests.chaos.patient import PatientRig
from tests.chaos.proxy import Effect, Moment, Proxy, Rule
from tests.chaos.scenes import (
    Scene,
    make_failing_scene,
    make_good_scene,
    make_killed_scene,
    make_lost_scene,
    make_retried_scene,
)
from tests.chaos.sites import Fault, Site
from tests.support.waiting import DEADLINE

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
_LOST_AFTER = 8.0  # seconds; several times the longest answer of a busy machine
_LATE = 1.5  # seconds; a server waits 0.7 for an inspection, and looks for the answer later
_LATE_ANSWERS = 6  # more than there are jobs, because riseml asks for some of them twice
_HANGS = 12.0  # seconds; the server waits 10 for a list

Harm = Callable[[PatientRig], list[Rule]]


def call_faults() -> list[Fault]:
    """Return a fault for each way in which calls can fail."""
    return [
        Fault("kill -9 before and after each engine call", _kill_around_calls, DOCKER),
        Fault("call cut before the engine has it", _cut_calls(Moment.BEFORE), DOCKER),
        Fault("answer lost after the engine did it", _cut_calls(Moment.AFTER), DOCKER),
        Fault("engine refuses for a while (500)", _refuse_calls, DOCKER),
        Fault("log stream cut at every piece", cut_stream(r"GET .*/logs", 25), DOCKER),
        Fault("stream of events cut at every piece", cut_stream(r"GET .*/events", 25), DOCKER),
        Fault("no events at all", _drop_events, DOCKER),
        Fault("engine slow: every call 0.3 s late", _delay_calls, DOCKER),
        Fault("engine answers late for a new server", inspect_late_after_death, DOCKER),
        Fault("engine hangs for 12 s", _hang_engine, DOCKER),
        Fault("engine silent beyond lost_after", _silence_engine, DOCKER),
    ]


def run_through_proxy(site: Site, scene: Scene, harm: Harm, orders: Iterable[str] = (), **environment: str) -> Tally:
    """Run one experiment whose server reaches the engine through a proxy with these rules; count each use of a rule.

    Args:
        site, scene, environment: where, what, and with which variables.
        harm: makes the rules.
        orders: the fault point at which each server dies, besides.
    """
    assert site.engine is not None, "the proxy needs an engine"
    with site.rig(orders, **environment) as rig:
        rules = harm(rig)
        socket_path = site.folder / f"{uuid.uuid4().hex[:8]}.sock"
        with Proxy(socket_path, site.engine, *rules) as proxy:
            rig.environment["DOCKER_HOST"] = proxy.url
            rig.run_scene(scene)
            if not scene.promised:
                rig.wait(
                    "the containers that came back with their host are removed",
                    lambda: not (rig.containers() or rig.networks()),
                )
            return judge(rig, scene, sum(rule.done for rule in rules))


def make_kill_rules(rig: PatientRig) -> list[Rule]:
    """Return rules that kill the server once before and once after each kind of call."""

    def end() -> Effect:
        os.kill(rig.server_pid(), signal.SIGKILL)
        return Effect.CUT

    moments = (Moment.BEFORE, Moment.AFTER)
    return [Rule(call, moment, end) for call in (*_MUTATING, *_READING, _BUILD) for moment in moments]


def make_cut_rules(_: PatientRig) -> list[Rule]:
    """Return rules that cut each kind of call twice before the engine gets it, and twice after the engine did it."""
    moments = (Moment.BEFORE, Moment.AFTER)
    return [Rule(call, moment, lambda: Effect.CUT, times=2) for call in _MUTATING for moment in moments]


def _kill_around_calls(site: Site) -> Tally:
    scenes = (
        make_failing_scene(),
        make_killed_scene(),
        make_good_scene(install=[f"echo {uuid.uuid4().hex}"]),
    )  # the last one makes every call of `good`
    return sum((run_through_proxy(site, scene, make_kill_rules) for scene in scenes), Tally())


def _cut_calls(moment: Moment) -> Callable[[Site], Tally]:
    def inflict(site: Site) -> Tally:
        def harm(_: PatientRig) -> list[Rule]:
            return [Rule(call, moment, lambda: Effect.CUT, times=2) for call in _MUTATING]

        return sum(
            (
                run_through_proxy(site, scene, harm)
                for scene in (make_good_scene(), make_failing_scene(), make_killed_scene())
            ),
            Tally(),
        )

    return inflict


def _refuse_calls(site: Site) -> Tally:
    def harm(_: PatientRig) -> list[Rule]:
        return [Rule(call, Moment.BEFORE, lambda: Effect.REFUSE, times=2) for call in _MUTATING]

    return sum(
        (
            run_through_proxy(site, scene, harm)
            for scene in (make_good_scene(), make_failing_scene(), make_killed_scene())
        ),
        Tally(),
    )


def cut_stream(pattern: str, times: int) -> Callable[[Site], Tally]:
    """Return a fault that cuts the stream after each of its first pieces, `times` in all."""

    def inflict(site: Site) -> Tally:
        return run_through_proxy(
            site, make_good_scene(60), lambda _: [Rule(pattern, Moment.DURING, lambda: Effect.CUT, times)]
        )

    return inflict


def _drop_events(site: Site) -> Tally:
    scenes = (make_good_scene(), make_failing_scene(), make_killed_scene())
    rules = [Rule(r"GET .*/events", Moment.BEFORE, lambda: Effect.CUT, times=None) for _ in scenes]
    pairs = zip(scenes, rules, strict=True)
    return sum((run_through_proxy(site, scene, partial(_use_rule, rule)) for scene, rule in pairs), Tally())


def _use_rule(rule: Rule, _: PatientRig) -> list[Rule]:
    return [rule]


def _delay_calls(site: Site) -> Tally:
    def wait() -> Effect:
        threading.Event().wait(0.3)
        return Effect.PASS

    def harm(_: PatientRig) -> list[Rule]:
        return [Rule(r".", Moment.BEFORE, wait, times=None)]

    found = sum(
        (
            run_through_proxy(site, scene, harm)
            for scene in (make_good_scene(), make_failing_scene(), make_killed_scene())
        ),
        Tally(),
    )
    return _count_harm_once(found)


def inspect_late_after_death(site: Site) -> Tally:
    """Let the engine be late with its first answers about containers to each server after the first one.

    The first server dies while its jobs run and half of their lines are read; in a second experiment it dies when an
    end is saved, and no line is read.
    """
    found = Tally()
    for point, reads_logs in ((f"{Point.LOG_READ.value}:9", True), (f"{Point.VERDICT_SAVED.value}:1", False)):
        found += run_through_proxy(site, make_good_scene(), partial(_make_late_rules, reads_logs), [point])
    return _count_harm_once(found)


def _make_late_rules(reads_logs: bool, rig: PatientRig) -> list[Rule]:  # noqa: FBT001  # of `partial`
    late = itertools.count()
    died = threading.Event()

    def answer_late() -> Effect:
        if died.is_set() and next(late) < _LATE_ANSWERS:
            threading.Event().wait(_LATE)
        return Effect.PASS

    def hold_log() -> Effect:
        if not reads_logs:
            died.wait(DEADLINE)
        return Effect.PASS

    rig.on_death = died.set
    return [
        Rule(r"GET .*/containers/[^/]+/json", Moment.BEFORE, answer_late, times=None),
        Rule(r"GET .*/logs", Moment.BEFORE, hold_log, times=None),
    ]


def _hang_engine(site: Site) -> Tally:
    """Let every call wait until the engine no longer hangs."""

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

    return _count_harm_once(run_through_proxy(site, make_good_scene(), harm))


def _silence_engine(site: Site) -> Tally:
    """Silence a host until it is lost. It comes back with running jobs: they end before a new attempt starts.

    riseml does not promise the output of that time.
    """
    found = Tally()
    twice = make_retried_scene(retry=5)  # a busy machine may be silent again
    for scene in (replace(make_lost_scene("HOST_LOST"), promised=False), replace(twice, promised=False, attempts=None)):
        back = threading.Event()

        def cut(back: threading.Event = back) -> Effect:
            return Effect.PASS if back.is_set() else Effect.CUT

        def harm(rig: PatientRig, cut: Callable[[], Effect] = cut, back: threading.Event = back) -> list[Rule]:
            back.set()
            threading.Thread(target=_silence_until_lost, args=(rig, back), daemon=True).start()
            return [Rule(r".", moment, cut, times=None) for moment in (Moment.BEFORE, Moment.DURING)]

        found += _count_harm_once(run_through_proxy(site, scene, harm, RISEML_LOST_AFTER=str(_LOST_AFTER)))
    return found


def _silence_until_lost(rig: PatientRig, back: threading.Event) -> None:
    """Silence the host from the moment at which the experiment runs until the server declares the host lost."""
    rig.wait("its output is there", lambda: list(Path(rig.home, "output").rglob("starts")))
    rig.wait("it runs", lambda: rig.state() == "RUNNING")
    back.clear()
    rig.wait("the host is lost", lambda: rig.state() not in ("RUNNING", ""))
    threading.Event().wait(_LOST_AFTER)
    back.set()


def _count_harm_once(found: Tally) -> Tally:
    """Count one fault for each experiment, however many calls it hit."""
    return Tally(found.experiments, found.experiments, found.right, found.left, found.lost, found.repeated, found.notes)
