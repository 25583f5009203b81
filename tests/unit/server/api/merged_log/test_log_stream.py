"""The merged stream: in the order of time, whole from any cursor on, and never silent for long."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riseml.base.names import JobName, parse_id
from riseml.base.states import JobDuty, Reason, State
from riseml.model import Frame, JobKey
from riseml.server.api.merged_log import log_stream
from riseml.server.api.merged_log.log_stream import _StreamReader, stream_entries
from riseml.server.api.merged_log.stream_cursor import parse_stream_cursor
from riseml.server.api.merged_log.stream_request import StreamRequest
from tests.unit.server.api.merged_log.scene import DEADLINE, JOBS, Scene, at, parse, shown


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.write("master", (2, "one"), (3, "two"), (6, "three"))
    made.write("worker.1", (4, "four"), (7, "a \u2028 b\r"))
    made.save(State.RUNNING, 5)
    return made


@pytest.mark.parametrize("batch", [False, True])
def test_lines_and_states_come_in_the_order_of_their_times(scene: Scene, *, batch: bool) -> None:
    words = shown(scene.read(batch=batch))
    assert words.index("1.master two") < words.index("1 state RUNNING") < words.index("1.master three")
    assert [word for word in words if "state" not in word] == [
        "1.master one",
        "1.master two",
        "1.master three",
        "1.worker.1 four",
        "1.worker.1 a \u2028 b\r",
    ]


def test_batches_have_the_same_lines_as_single_entries(scene: Scene) -> None:
    alone, together = scene.read(), scene.read(batch=True)
    assert shown(alone) == shown(together)
    assert len(together) < len(alone)
    assert together[-1]["cursor"] == alone[-1]["cursor"]


@pytest.mark.parametrize("batch", [False, True])
def test_a_reader_from_any_cursor_loses_and_repeats_nothing(scene: Scene, *, batch: bool) -> None:
    scene.logs.append_frames(JobKey(1, JobName("master"), 1), [Frame("2026-08-31T07:23:48Z", 1, b"a long ")])
    scene.write("worker.1", (9, "between"))
    scene.write("master", (8, "line"), (10, "end"))
    entries = scene.read(batch=batch)
    assert shown(entries)[-3:] == ["1.worker.1 between", "1.master a long line", "1.master end"]
    for number, entry in enumerate(entries):
        assert shown(scene.read(entry["cursor"], batch=batch)) == shown(entries[number + 1 :])


@pytest.mark.parametrize("batch", [False, True])
def test_a_tail_has_the_last_lines_and_no_states(scene: Scene, *, batch: bool) -> None:
    scene.save(State.FINISHED, 20)
    whole = [word for word in shown(scene.read()) if "state" not in word]
    for tail in range(7):
        *words, ping = shown(scene.read(batch=batch, tail=tail))
        assert words == whole[max(0, len(whole) - tail) :]
        assert "ping" in ping


@pytest.mark.parametrize("tail", [0, 2])
def test_everything_behind_a_tail_is_sent(scene: Scene, tail: int) -> None:
    ping = scene.read(tail=tail)[-1]
    scene.write("master", (8, "late"))
    scene.save(State.FINISHED, 20, closed=True)
    rest = shown(scene.read(ping["cursor"], follow=True))
    assert rest[0] == "1.master late"
    assert {"1.master state FINISHED", "1 state FINISHED", "1 end FINISHED"} <= set(rest)


@pytest.mark.parametrize("batch", [False, True])
def test_a_reader_may_ask_for_one_job_or_from_a_time_on(scene: Scene, *, batch: bool) -> None:
    assert shown(scene.read(name="1.worker", batch=batch))[-1] == "1.worker.1 a \u2028 b\r"
    assert not any("master" in word for word in shown(scene.read(name="1.worker", batch=batch)))
    words = [word for word in shown(scene.read(since=at(4), batch=batch)) if "state" not in word]
    assert words == ["1.master three", "1.worker.1 four", "1.worker.1 a \u2028 b\r"]


def test_a_reader_that_follows_gets_everything_up_to_the_end(scene: Scene) -> None:
    async def run() -> list[dict[str, Any]]:
        reading = asyncio.create_task(scene._read("", {"follow": True, "batch": True}))
        for number in range(5):
            await asyncio.to_thread(scene.write, "master", (11 + number, f"late {number}"))
        await asyncio.to_thread(scene.save, State.FINISHED, 20, closed=True)
        return await asyncio.wait_for(reading, DEADLINE)

    words = shown(asyncio.run(run()))
    assert [word for word in words if "late" in word] == [f"1.master late {number}" for number in range(5)]
    assert words[-1] == "1 end FINISHED"


def test_the_stream_ends_when_all_was_sent_while_containers_are_still_being_removed(scene: Scene) -> None:
    scene.save(State.FINISHED, 20)
    assert scene.waits(closed=False), "logs are still being read"
    scene.finish("master")
    assert scene.waits(closed=False)
    scene.finish("worker.1")
    assert scene.ends(closed=False)
    assert scene.waits(), "not for a reader that waits until no host has anything left"
    scene.save(State.FINISHED, 20, closed=True)
    assert scene.ends()


def test_the_stream_waits_for_the_log_of_an_earlier_attempt(scene: Scene) -> None:
    scene.save(State.FINISHED, 20)
    before = scene.load()
    jobs = tuple(replace(job, attempt=2) if job.name == "master" else job for job in before.jobs)
    assert scene.experiments.save_decision(before, replace(before, jobs=jobs), at(20))
    scene.logs.finish_job(JobKey(1, JobName("master"), 2))
    scene.finish("worker.1")
    assert scene.waits(closed=False)
    scene.finish("master")
    assert scene.ends(closed=False)


# --- the end of a job is sent after its last line ---


@pytest.fixture
def then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the server shows the time of the scene."""
    monkeypatch.setattr("riseml.server.api.merged_log.log_stream.now", lambda: at(20))


ENDS = ["1.master state FINISHED", "1.worker.1 state FINISHED", "1 state FINISHED"]


@pytest.mark.usefixtures("then")
@pytest.mark.parametrize("batch", [False, True])
def test_the_end_of_a_job_waits_for_all_lines_of_the_job(scene: Scene, *, batch: bool) -> None:
    scene.save(State.FINISHED, 10)
    first = scene.read(batch=batch)
    assert not any("FINISHED" in word for word in shown(first) if "build" not in word), "lines may still come"
    scene.write("master", (9, "last"))
    scene.finish("master")
    scene.write("worker.1", (11, "very last"))
    scene.finish("worker.1")
    rest = shown(scene.read(first[-1]["cursor"], batch=batch, follow=True, closed=False))
    assert rest == ["1.master last", ENDS[0], "1.worker.1 very last", *ENDS[1:], "1 end FINISHED"]


@pytest.mark.parametrize("batch", [False, True])
def test_in_a_stored_log_the_end_of_a_job_is_behind_its_last_line_whatever_the_clocks_say(
    scene: Scene, *, batch: bool
) -> None:
    scene.write("master", (12, "last"))
    scene.finish("master")
    scene.write("worker.1", (11, "between"), (13, "very last"))
    scene.finish("worker.1")
    scene.save(State.FINISHED, 10, closed=True)
    scene.logs.close_experiment(1)
    entries = scene.read(batch=batch, follow=True)
    words = shown(entries)
    assert words.index("1.master last") < words.index(ENDS[0])
    assert words[-4:] == ["1.worker.1 very last", *ENDS[1:], "1 end FINISHED"]
    for number, entry in enumerate(entries[:-1]):
        assert shown(scene.read(entry["cursor"], batch=batch, follow=True)) == shown(entries[number + 1 :])


def test_lines_in_pieces_come_together_and_in_the_order_in_which_they_come_alone(scene: Scene) -> None:
    scene.write_pieces("master", 8.0, "a", "b", "c")
    scene.write_pieces("worker.1", 8.1, "d", "e")
    scene.finish("master")
    scene.write_pieces("worker.1", 8.2, "f", "g")
    scene.finish("worker.1")
    scene.save(State.FINISHED, 8, closed=True)
    entries = scene.read(batch=True, follow=True)
    words = ["1.worker.1 d", "1.worker.1 e", ENDS[0], "1.worker.1 f", "1.worker.1 g", *ENDS[1:], "1 end FINISHED"]
    assert shown(entries)[-len(words) :] == words
    assert shown(scene.read(follow=True)) == shown(entries)
    assert [entry["text"].count("\n") for entry in entries if entry["type"] == "lines"][-3:] == [3, 2, 2]
    for number, entry in enumerate(entries[:-1]):
        assert shown(scene.read(entry["cursor"], batch=True, follow=True)) == shown(entries[number + 1 :])


@pytest.mark.usefixtures("then")
def test_the_end_of_a_job_whose_host_is_lost_waits_for_no_line(scene: Scene) -> None:
    scene.save(State.FAILED, 10, reason=Reason.HOST_LOST)
    assert shown(scene.read())[-1] == "1 state FAILED"


def test_an_old_end_waits_for_no_line(scene: Scene) -> None:
    scene.save(State.FINISHED, 10)
    assert shown(scene.read())[-1] == "1 state FINISHED"


@pytest.mark.usefixtures("then")
def test_an_end_waits_no_longer_than_the_patience(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.server.api.merged_log.event_order.PATIENCE", 0.05)
    scene.save(State.FINISHED, 10)

    async def run() -> list[str]:
        found: list[str] = []
        with scene.notifier.subscribe((1,)):
            request = StreamRequest(parse_id("1"), (1,), follow=True, positions=parse_stream_cursor("", 1))
            async for piece in stream_entries(request, scene.experiments, scene.logs, scene.notifier):
                found += [word for word in shown(list(parse(piece))) if "ping" not in word]
                if found and found[-1] == "1 state FINISHED":
                    break
        return found

    assert asyncio.run(asyncio.wait_for(run(), 30))[-3:] == ENDS


@pytest.mark.usefixtures("then")
def test_pings_come_while_an_end_waits_for_a_line(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.server.api.merged_log.event_order.PATIENCE", 60.0)
    scene.save(State.FINISHED, 10)

    async def run() -> None:
        with scene.notifier.subscribe((1,)):
            positions = parse_stream_cursor("", 1)
            request = StreamRequest(parse_id("1"), (1,), follow=True, positions=positions, heartbeat=0.05)
            async for piece in stream_entries(request, scene.experiments, scene.logs, scene.notifier):
                if any("ping" in word for word in shown(list(parse(piece)))):
                    return

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.usefixtures("then")
@given(st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_line_is_behind_the_end_of_its_job_whatever_comes_first(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Lines come late or are dated late; the end is seen before or after them; readers come at any time."""
    made = Scene(tmp_path_factory.mktemp("scene"))
    made.save(State.RUNNING, 1)
    seconds = st.integers(2, 19)
    todo = [*data.draw(st.permutations(["master"] * 3 + ["worker.1"] * 3)), "end", "finish"]
    where = data.draw(st.integers(0, len(todo) - 2))
    todo.insert(where, todo.pop(-2))  # the server sees the end at any moment
    cursor, words = "", []
    for number, step in enumerate(todo):
        if step == "end":
            made.save(State.FINISHED, data.draw(seconds))
        elif step == "finish":
            made.finish("master", "worker.1")
        else:
            made.write(step, (data.draw(seconds), f"line {number}"))
        if data.draw(st.booleans()):
            entries = made.read(cursor, batch=data.draw(st.booleans()))
            cursor = entries[-1]["cursor"] if entries else cursor
            words += shown(entries)
    words += shown(made.read(cursor, follow=True, closed=False))
    assert sorted(words) == sorted(set(words))
    assert sum(" line " in word for word in words) == 6
    for job in JOBS:
        said = [number for number, word in enumerate(words) if word.startswith(f"1.{job} ")]
        assert words[said[-1]] == f"1.{job} state FINISHED"
    assert words[-2:] == ["1 state FINISHED", "1 end FINISHED"]


def start(scene: Scene, state: State, second: float) -> None:
    """Write that the experiment and its jobs are starting or run; the jobs started at this second of their host."""
    before = scene.load()
    jobs = tuple(
        job
        if job.part is JobDuty.PREPARES
        else replace(job, state=state, started_at=at(second) if state is State.RUNNING else None)
        for job in before.jobs
    )
    after = replace(before, state=state, jobs=jobs, placed_at=at(1))
    assert scene.experiments.save_decision(before, after, at(second + 1))
    scene.notifier.publish_records(1)


@pytest.mark.parametrize("batch", [False, True])
def test_no_line_stands_before_the_start_of_its_job(tmp_path: Path, *, batch: bool) -> None:
    scene = Scene(tmp_path)
    start(scene, State.STARTING, 1)
    scene.write("worker.1", (2, "early"))
    scene.write("master", (2.5, "early"))
    first = scene.read(batch=batch)
    assert not [word for word in shown(first) if "early" in word], "the server has not written yet that they run"
    start(scene, State.RUNNING, 3)
    scene.write("master", (4, "late"))
    expected = [f"1.{job} state RUNNING" for job in JOBS] + ["1 state RUNNING"]
    expected += ["1.worker.1 early", "1.master early", "1.master late"]
    assert shown(scene.read(first[-1]["cursor"], batch=batch)) == expected
    assert shown(scene.read(batch=batch))[-6:] == expected


def test_lines_wait_for_the_start_no_longer_than_the_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.server.api.merged_log.event_order.PATIENCE", 0.0)
    scene = Scene(tmp_path)
    start(scene, State.STARTING, 1)
    scene.write("master", (2, "early"))
    assert "1.master early" in shown(scene.read())


def test_a_reader_of_a_quiet_job_gets_pings_while_another_job_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client takes a connection without any entry for a lost one; and it goes on behind what was left out."""
    scene, left = Scene(tmp_path), [4, 3, 2]
    monkeypatch.setattr("riseml.server.api.merged_log.log_stream._HEARTBEAT", 0.0)

    async def let_it_print(*_: object) -> bool:
        if left:
            scene.write("worker.1", (left.pop(), "step"))
        else:
            scene.save(State.FINISHED, 10, closed=True)
        return True

    monkeypatch.setattr("riseml.server.reconcile.notifier.Subscription.wait_for_change", let_it_print)
    scene.save(State.RUNNING, 1)
    entries = scene.read(name="1.master", follow=True)
    pings = [entry["cursor"] for entry in entries if entry["type"] == "ping"]
    assert len(set(pings[:3])) == 3, "each is behind one more line"
    last = ["1.master state FINISHED", "1 end FINISHED"]
    assert [word for word in shown(entries) if "ping" not in word][-2:] == last
    monkeypatch.undo()
    assert shown(scene.read(pings[2], name="1.master")) == last


def test_a_tail_that_takes_long_sends_pings_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lines of many large logs take longer than a client waits for an answer."""
    scene, is_told, read_tail = Scene(tmp_path), threading.Event(), log_stream._read_tail
    monkeypatch.setattr(log_stream, "_HEARTBEAT", 0.001)

    def read_slowly(*arguments: Any) -> Any:
        assert is_told.wait(DEADLINE), "no ping came"
        return read_tail(*arguments)

    monkeypatch.setattr(log_stream, "_read_tail", read_slowly)
    scene.save(State.RUNNING, 1)
    scene.write("master", (2, "a"), (3, "b"))

    async def run() -> list[str]:
        request = StreamRequest(parse_id("1"), (1,), follow=False, positions=parse_stream_cursor("", 1), tail=1)
        found = []
        async for piece in stream_entries(request, scene.experiments, scene.logs, scene.notifier):
            is_told.set()
            found += [word for word in shown(list(parse(piece))) if "ping" not in word]
        return found

    assert asyncio.run(run()) == ["1.master b"]


def test_what_is_over_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A followed search may have hundreds of trials that have ended."""
    scene = Scene(tmp_path)
    scene.save(State.RUNNING, 1, reason=Reason.RUNNING)
    scene.write("master", (2, "one"))
    scene.finish(*JOBS)
    scene.save(State.FINISHED, 5, closed=True)
    request = StreamRequest(parse_id("1"), (1,), follow=True, positions=parse_stream_cursor("", 1))
    reader = _StreamReader(request, scene.experiments, scene.logs)
    entries = []
    for _ in range(4):
        entries += reader.read_entries().entries
    asked: list[int] = []
    monkeypatch.setattr(scene.logs, "log_size", asked.append)
    monkeypatch.setattr(scene.logs, "read_blocks", lambda identity, *_, **__: asked.append(identity))
    reader.mark_stale(frozenset({1}))
    last = reader.read_entries()
    assert (last.entries, last.is_last, asked) == ([], True, [])
    assert [entry["text"] for entry in entries if entry["type"] == "line"] == ["one"]
    assert entries[-1]["type"] == "state"
    assert entries[-1]["state"] == "FINISHED"
