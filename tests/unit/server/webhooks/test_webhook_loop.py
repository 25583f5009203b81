"""Webhooks get each end: signed, in order, and again after failures and restarts; no answer holds them up."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import StoreError
from riseml.base.states import State
from riseml.model import Experiment, Owner
from riseml.planning.plan import first_jobs
from riseml.server.webhooks import webhook_loop
from riseml.server.webhooks.remark_watch import FoundRemark, RemarkWatch
from riseml.server.webhooks.webhook_file import FILE
from riseml.server.webhooks.webhook_loop import NotDelivered, WebhookLoop, WebhookLoopParts, post
from riseml.spec.config.types import MetricCondition, NotifySection, Relation
from riseml.store.database import Database
from riseml.store.ends import EndStore
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.milestones import MilestoneStore
from riseml.store.noted_remarks import RemarkStore
from riseml.store.searches import SearchStore
from tests.support.receiver import Receiver, open_receiver
from tests.support.searches import LR, SearchRig, make_search
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.control.simulation import change_policy, make_plan

SECRET = "canary-5e1f"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/riseml.db")
    yield made
    made.close()


@pytest.fixture
def experiments(database: Database) -> ExperimentStore:
    return ExperimentStore(database)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with open_receiver() as made:
        yield made


class Scene:
    """A home with a store, and a loop that tells its webhooks."""

    def __init__(self, home: Path, experiments: ExperimentStore, database: Database) -> None:
        self.home = home
        self.experiments = experiments
        self.milestones = MilestoneStore(database)
        self.remarks = RemarkStore(database)
        self.wrong: list[FoundRemark] = []  # with each experiment that runs
        self.noted: list[tuple[int, str]] = []
        self.desk = WebhookLoopParts(
            server="server",
            ends=EndStore(database),
            milestones=self.milestones,
            remarks=self.make_watch(),
            experiments=experiments,
            searches=SearchStore(database),
            news=threading.Event(),
            note=lambda *line: self.noted.append(line),
        )
        self.loop = self.make_loop()

    def make_watch(self) -> RemarkWatch:
        return RemarkWatch(self.remarks, self.list_running, lambda _: self.wrong, clock=count().__next__)

    def list_running(self) -> list[Experiment]:
        world = self.experiments.load_world()
        return [replace(experiment, state=State.RUNNING) for experiment in world.experiments]

    def make_loop(self) -> WebhookLoop:
        return WebhookLoop(self.home, self.desk, partial(post, deadline=DEADLINE))

    def write(self, *rows: dict[str, object]) -> None:
        """Write the user's file."""
        (self.home / FILE).write_text(json.dumps({"webhooks": rows}))
        (self.home / FILE).chmod(0o600)

    def end(
        self,
        state: State = State.FAILED,
        message: str = "train ended with exit code 7",
        notify: NotifySection | None = None,
    ) -> None:
        """Let one more experiment end, as a pass of the control loop does."""
        (one,) = self.submit(notify)
        self.finish(one, state, message)

    def submit(
        self, notify: NotifySection | None = None, count: int = 1, team_project: str | None = None
    ) -> list[Experiment]:
        """Store one more experiment, or a set of several."""
        plan = change_policy(make_plan("train"), notify=notify)
        plans = tuple((plan, first_jobs(plan)) for _ in range(count))
        concurrency = count if count > 1 else None
        owner = Owner("ann", 1, 1)
        new = NewExperiments(owner, "toaster", "", "", plans, concurrency=concurrency, team_project=team_project)
        details, _ = self.experiments.add_experiments(new, datetime.now(UTC))  # noqa: TID251  # as the file has
        return [detail.experiment for detail in details]

    def finish(self, before: Experiment, state: State, message: str = "", *, closed: bool = True) -> None:
        """Let an experiment run and end."""
        moment = datetime.now(UTC)  # noqa: TID251  # the file of webhooks has a time of day, too
        running = replace(before, state=State.RUNNING, started_at=moment - timedelta(seconds=90))
        assert self.experiments.save_decision(before, running, moment)
        running = replace(running, version=before.version + 1)
        done = replace(running, state=state, closed=closed, ended_at=moment, message=message)
        assert self.experiments.save_decision(running, done, moment)


@pytest.fixture
def scene(tmp_path: Path, experiments: ExperimentStore, database: Database) -> Scene:
    return Scene(tmp_path, experiments, database)


def test_ends_are_sent_once_signed_and_in_order(scene: Scene, receiver: Receiver) -> None:
    scene.end(State.KILLED)  # before the file
    scene.write(
        {"name": "all", "url": f"{receiver.url}/all?x=1", "secret": SECRET},
        {"name": "slack", "url": f"{receiver.url}/slack", "events": ["failed"], "format": "slack"},
        {"name": "other", "url": f"{receiver.url}/other", "projects": ["bread"]},
        {"name": "discord", "url": f"{receiver.url}/discord", "format": "discord"},
    )
    scene.end(State.FAILED, "exit code 7: \x1b[31m<!channel> & more\x1b[0m\nlines")
    scene.end(State.FINISHED, "")
    scene.loop._try_pass()
    scene.loop._try_pass()
    found = {
        path: [one for one in receiver.received if one.path == path] for path in ("/all?x=1", "/slack", "/discord")
    }
    assert sum(map(len, found.values())) == len(receiver.received) == 5
    first, second = found["/all?x=1"]
    told = json.loads(first.body)["experiment"]
    assert (told["id"], told["state"], told["message"]) == ("2", "FAILED", "exit code 7: <!channel> & more lines")
    assert json.loads(second.body)["experiment"]["state"] == "FINISHED"
    moment = first.headers["Riseml-Time"]
    signed = hmac.new(SECRET.encode(), moment.encode() + b"." + first.body, hashlib.sha256).hexdigest()
    assert first.headers["Riseml-Signature"] == f"sha256={signed}"
    assert abs(int(moment) - datetime.now(UTC).timestamp()) < DEADLINE  # noqa: TID251  # signed with the time of day
    assert first.headers["Riseml-Delivery"] != second.headers["Riseml-Delivery"]
    (slack,) = found["/slack"]
    why = "exit code 7: &lt;!channel&gt; &amp; more lines"
    assert json.loads(slack.body) == {"text": f"riseml: experiment 2 of toaster FAILED after 90 s: {why}"}
    assert "Riseml-Signature" not in slack.headers
    assert json.loads(found["/discord"][0].body)["allowed_mentions"] == {"parse": []}


def test_what_fails_is_tried_again_by_a_later_server(
    scene: Scene, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [500, 404]
    scene.write({"name": "mine", "url": f"{receiver.url}/{SECRET}", "secret": SECRET})
    with caplog.at_level(logging.INFO):
        scene.end()
        assert scene.loop._try_pass() <= 2.0
        scene.loop._try_pass()
        assert len(receiver.received) == 1, "its pause is not over"
        assert scene.loop.has_waiting(), "the server must not end for being idle"
        scene.loop = scene.make_loop()  # a server that starts
        scene.loop._try_pass()
        scene.make_loop()._try_pass()
    assert len({one.headers["Riseml-Delivery"] for one in receiver.received}) == 1
    assert len(receiver.received) == 3
    assert (
        caplog.messages[0] == "1: webhook mine did not take the notice, tried again later: it answered with status 500"
    )
    assert caplog.messages[-1] == "1: webhook mine got the notice: FAILED (200)"
    assert scene.noted[0] == (
        1,
        "webhook mine did not take the notice, tried again later: it answered with status 500",
    )
    assert scene.noted[-1] == (1, "webhook mine got the notice: FAILED (200)")
    assert SECRET not in caplog.text
    monkeypatch.setattr(webhook_loop, "_GIVES_UP", -1.0)
    receiver.statuses = [500]
    scene.end()
    scene.make_loop()._try_pass()
    assert caplog.messages[-1].startswith("2: webhook mine does not get this notice: ")
    last = scene.make_loop()
    last._try_pass()
    assert len(receiver.received) == 4
    assert not last.has_waiting()


def test_a_changed_webhook_does_not_wait_for_what_the_old_one_refused(scene: Scene, receiver: Receiver) -> None:
    receiver.statuses = [404]
    scene.write({"name": "mine", "url": f"{receiver.url}/wrong"})
    scene.end()
    scene.loop._try_pass()
    scene.loop._try_pass()
    assert [one.path for one in receiver.received] == ["/wrong"], "its pause is not over"
    scene.write({"name": "mine", "url": f"{receiver.url}/right"})
    scene.loop._try_pass()
    assert [one.path for one in receiver.received] == ["/wrong", "/right"]
    assert not scene.loop.has_waiting()


@pytest.mark.parametrize("rows", [None, [{"name": "other", "url": "http://127.0.0.1:9"}]], ids=["no file", "another"])
def test_a_webhook_that_was_removed_is_new_when_it_comes_back(
    scene: Scene, receiver: Receiver, rows: list[dict[str, object]] | None
) -> None:
    """Also when no server has run since, or none while the file had it."""
    scene.write({"name": "mine", "url": receiver.url})
    assert tell(scene, receiver) == []
    if rows is None:
        (scene.home / FILE).unlink()
    else:
        scene.write(*rows)
    scene.loop = scene.make_loop()  # the next server
    assert tell(scene, receiver) == []
    scene.end()
    scene.write({"name": "mine", "url": receiver.url})
    assert tell(scene, receiver) == [], "it ended before"
    scene.end()
    assert tell(scene, receiver) == [("/", "experiment.ended")]


def test_a_store_that_cannot_grow_repeats_no_notice(
    scene: Scene, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk is full: the position of the webhook is stored once there is room."""

    def refuse(*_: object) -> None:
        raise StoreError("the store cannot grow: its disk is full")

    scene.write({"name": "mine", "url": receiver.url})
    scene.end()
    with monkeypatch.context() as full:
        full.setattr(EndStore, "save_position", refuse)
        assert tell(scene, receiver) == [("/", "experiment.ended")]
        assert tell(scene, receiver) == []
    assert tell(scene, receiver) == []
    scene.end()
    assert tell(scene, receiver) == [("/", "experiment.ended")]
    scene.loop = scene.make_loop()  # the next server
    assert tell(scene, receiver) == []


def test_a_bad_file_sends_no_notice_and_is_logged_once(
    scene: Scene, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    scene.write({"name": "mine", "url": receiver.url})
    (scene.home / FILE).chmod(0o644)
    scene.end()
    scene.loop._try_pass()
    scene.loop._try_pass()
    assert len(caplog.messages) == 1
    assert "is not a file of yours alone" in caplog.messages[0]
    (scene.home / FILE).chmod(0o600)
    scene.loop._try_pass()
    assert len(receiver.received) == 1


def test_the_thread_tells_what_ends_and_stops(scene: Scene, receiver: Receiver) -> None:
    scene.write({"name": "mine", "url": receiver.url})
    scene.loop.start()
    scene.end()
    scene.loop.note_end()
    wait_for("the webhook is told", lambda: receiver.received, DEADLINE)
    scene.loop.stop()
    scene.loop.join(DEADLINE)
    assert not scene.loop.is_alive()


def tell(scene: Scene, receiver: Receiver) -> list[tuple[str, str]]:
    """Let the loop send everything, and return the path and the event, or the sentence, of each request."""
    receiver.received.clear()
    scene.loop._try_pass()
    return [(one.path, json.loads(one.body).get("text") or json.loads(one.body)["event"]) for one in receiver.received]


def test_a_set_gives_one_notice_when_its_last_experiment_has_ended(scene: Scene, receiver: Receiver) -> None:
    scene.write({"name": "mine", "url": f"{receiver.url}/", "format": "slack"})
    first, second, third = scene.submit(count=3)
    scene.finish(second, State.FINISHED)
    scene.finish(first, State.FAILED, "exit code 7")
    assert tell(scene, receiver) == []
    scene.finish(third, State.FINISHED)
    assert tell(scene, receiver) == [("/", "riseml: set 1 of toaster FINISHED: 2 of 3 finished, 1 failed")]
    assert tell(scene, receiver) == []
    assert scene.noted == [(3, "webhook mine got the notice: FINISHED (200)")]
    scene.end(State.KILLED, "")
    assert tell(scene, receiver) == [("/", "riseml: experiment 2 of toaster KILLED after 90 s")]


def test_a_set_gives_its_notice_however_late_its_search_ends(
    scene: Scene, receiver: Receiver, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_loop, "_SEARCH_PATIENCE", -1.0)  # it has passed
    scene.write({"name": "mine", "url": f"{receiver.url}/", "format": "slack"})
    rig = SearchRig(database, make_search(trials=1), (LR,))
    (member,) = scene.experiments.find_by_number("paul", 1)
    scene.finish(member.experiment, State.FINISHED, closed=False)  # its last copy is not in its store yet
    scene.end(State.KILLED, "")
    (other,) = tell(scene, receiver)
    assert "KILLED" in other[1], "the ends of others do not wait for it"
    assert tell(scene, receiver) == []
    rig.end(1)  # it is closed
    rig.loop.run_pass()
    receiver.statuses = [500]
    scene.loop = scene.make_loop()  # of a server that starts meanwhile
    assert len(tell(scene, receiver)) == 1
    scene.loop = scene.make_loop()
    assert tell(scene, receiver) == [
        ("/", "riseml: set 1 of x FAILED: 1 of 1 finished. No trial reported the metric of its search")
    ]
    assert tell(scene, receiver) == []


def test_a_project_asks_for_events_and_names_a_webhook(scene: Scene, receiver: Receiver) -> None:
    """What it asks for comes to what the user has chosen; it reaches no webhook that is not for this project."""
    scene.write(
        {"name": "quiet", "url": f"{receiver.url}/quiet", "events": []},
        {"name": "team", "url": f"{receiver.url}/team", "events": ["killed"]},
        {"name": "bread", "url": f"{receiver.url}/bread", "events": [], "projects": ["bread"]},
    )
    scene.end(State.FAILED)
    assert tell(scene, receiver) == []
    scene.end(State.FAILED, notify=NotifySection(ends=(State.FAILED,)))
    assert tell(scene, receiver) == [("/quiet", "experiment.ended"), ("/team", "experiment.ended")]
    scene.end(State.FAILED, notify=NotifySection(ends=(State.FAILED,), to=("team", "bread", "nobody")))
    assert tell(scene, receiver) == [("/team", "experiment.ended")]
    scene.end(State.KILLED, notify=NotifySection(ends=(State.FAILED,), to=("quiet",)))
    assert tell(scene, receiver) == [("/team", "experiment.ended")], "a project takes nothing away"


def test_the_webhook_of_a_team_project_gets_nothing_of_others_who_write_its_name(
    scene: Scene, receiver: Receiver
) -> None:
    """Each user of a team's server may call a project of their own as they like."""
    scene.desk = replace(scene.desk, is_team=True)
    scene.loop = scene.make_loop()
    scene.write(
        {"name": "toaster", "url": f"{receiver.url}/toaster", "projects": ["toaster"]},
        {"name": "all", "url": f"{receiver.url}/all"},
    )
    condition = MetricCondition("accuracy", Relation.ABOVE, 0.95)
    for team_project, paths in ((None, ["/all"]), ("toaster", ["/toaster", "/all"])):
        (one,) = scene.submit(NotifySection(reached=(condition,)), team_project=team_project)
        moment = datetime.now(UTC)  # noqa: TID251  # the store's own clock
        scene.milestones.add_milestone(one.id, str(condition), 0.96, 12, moment)
        scene.finish(one, State.FAILED)
        several = scene.submit(count=2, team_project=team_project)
        for member in several:
            scene.finish(member, State.FAILED)
        events = ("experiment.ended", "metric.reached", "set.ended")
        assert sorted(tell(scene, receiver)) == sorted((path, event) for path in paths for event in events)


def test_a_metric_that_reaches_a_value_is_sent_to_the_webhooks_that_the_project_names(
    scene: Scene, receiver: Receiver
) -> None:
    condition = MetricCondition("accuracy", Relation.ABOVE, 0.95)
    (one,) = scene.submit(NotifySection(reached=(condition,), to=("team",)))
    moment = datetime.now(UTC)  # noqa: TID251  # as the file has
    scene.milestones.add_milestone(one.id, "loss < 1", 0.9, None, moment - timedelta(hours=2))  # before the file
    scene.write(
        {"name": "team", "url": f"{receiver.url}/team", "events": []}, {"name": "other", "url": f"{receiver.url}/other"}
    )
    assert tell(scene, receiver) == []
    scene.milestones.add_milestone(one.id, str(condition), 0.96, 12, datetime.now(UTC))  # noqa: TID251  # the store's own clock
    assert tell(scene, receiver) == [("/team", "metric.reached")]
    told = json.loads(receiver.received[0].body)
    assert (told["experiment"]["id"], told["metric"]["condition"]) == ("1", "accuracy > 0.95")
    assert (told["metric"]["value"], told["metric"]["step"]) == (0.96, 12)
    assert scene.noted == [(one.id, "webhook team got the notice: accuracy > 0.95 (200)")]
    scene.loop = scene.make_loop()  # the next server
    assert tell(scene, receiver) == []


def test_each_kind_of_remark_is_sent_once_to_the_webhooks_that_want_it(scene: Scene, receiver: Receiver) -> None:
    (asked,) = scene.submit(NotifySection(remarks=True, to=("team",)))
    scene.submit()
    scene.write(
        {"name": "team", "url": f"{receiver.url}/team", "events": []},
        {"name": "all", "url": f"{receiver.url}/all", "events": ["remark"]},
        {"name": "ends", "url": f"{receiver.url}/ends"},
    )
    assert tell(scene, receiver) == []
    scene.wrong = [FoundRemark("nan", None, "loss is nan at step 19")]
    look_again(scene)
    event = "experiment.remark"
    assert sorted(tell(scene, receiver)) == [("/all", event), ("/all", event), ("/team", event)]
    bodies = {request.path: json.loads(request.body) for request in receiver.received}
    assert bodies["/team"]["experiment"]["id"] == "1"
    assert bodies["/team"]["remark"].items() >= {"kind": "nan", "job": None, "text": "loss is nan at step 19"}.items()
    assert (asked.id, "webhook team got the notice: remark nan (200)") in scene.noted
    scene.wrong = [FoundRemark("nan", None, "loss is nan at step 20")]
    look_again(scene)
    assert tell(scene, receiver) == [], "it is the same kind"
    scene.wrong.append(FoundRemark("idle-gpu", "train", "its GPUs do nothing for 10 m"))
    look_again(scene)  # also by the next server, which remembers nothing
    assert sorted(tell(scene, receiver)) == [("/all", event), ("/all", event), ("/team", event)]


def look_again(scene: Scene) -> None:
    """Make the next pass one of another server, which looks at once."""
    scene.desk = replace(scene.desk, remarks=scene.make_watch())
    scene.loop = scene.make_loop()


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.statuses, receiver.location = [307], f"{receiver.url}/elsewhere"
    with pytest.raises(NotDelivered, match="redirect, which is not followed"):
        post(receiver.url, b"{}", {})
    assert [one.path for one in receiver.received] == ["/"]


@pytest.mark.parametrize("way", ["hangs", "drips"])
def test_an_address_without_an_end_is_left(receiver: Receiver, way: str) -> None:
    setattr(receiver, way, True)
    with pytest.raises(NotDelivered):
        post(receiver.url, b"{}", {}, deadline=0.3)


def test_an_answer_without_an_end_is_left_after_a_slow_connection(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = socket.create_connection

    def connect_slowly(*arguments: Any) -> socket.socket:
        for timer in threading.enumerate():
            if isinstance(timer, threading.Timer):
                timer.join(DEADLINE)  # the deadline passes before the name is resolved
        return connect(*arguments)

    monkeypatch.setattr("socket.create_connection", connect_slowly)
    receiver.drips = True
    with pytest.raises(NotDelivered):
        post(receiver.url, b"{}", {}, deadline=0.3)


def test_an_address_that_is_gone_is_no_answer() -> None:
    with open_receiver() as gone:
        url = gone.url
    with pytest.raises(NotDelivered, match="refused"):
        post(url, b"{}", {})


@pytest.mark.parametrize(
    ("url", "place"),
    [("https://[2001:db8::beef]/x", ("2001:db8::beef", 443)), ("http://[2001:db8::1]/x", ("2001:db8::1", 80))],
)
def test_an_ipv6_address_needs_no_port(monkeypatch: pytest.MonkeyPatch, url: str, place: tuple[str, int]) -> None:
    called: list[object] = []

    def refuse(address: object, *_: object) -> None:
        called.append(address)
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr("socket.create_connection", refuse)
    with pytest.raises(NotDelivered, match="refused"):
        post(url, b"{}", {})
    assert called == [place]
