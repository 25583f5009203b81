"""The log in brief: a line for each state, short prefixes, and each message once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from riseml import wire
from riseml.cli.output.brief_log import BriefFormatter, name_experiment
from tests.unit.cli.fake_server import line, make_experiment, make_job, state

ACCEPTED: dict[str, Any] = {"reason": "SUBMITTED", "sentence": "Accepted"}
PREPARE: dict[str, Any] = {"reason": "PREPARE", "sentence": "Preparing environment"}
DONE: dict[str, Any] = {"reason": "COMPLETED", "sentence": "Completed"}
STOPPED: dict[str, Any] = {
    "reason": "NO_LONGER_NEEDED",
    "sentence": "Stopped: the experiment has its verdict",
    "exit_code": 143,
}
FETCH = "the image none:1 is not on the host and cannot be fetched: dial tcp: lookup registry.example: no such host"
GANG = make_experiment(jobs=[make_job(f"4.{name}") for name in ("build", "master", "worker.1", "ps.1")])
SET = make_experiment(
    "5",
    type="set",
    jobs=[],
    experiments=[make_experiment(f"5.{at}", jobs=[make_job(f"5.{at}.{name}")]) for at in (1, 2) for name in ("train",)],
)


def _log(
    *entries: wire.StateEntry | wire.LineEntry | wire.LinesEntry,
    of: wire.ExperimentView = GANG,
    ends: bool = True,
    colour: bool = False,
) -> list[str]:
    formatter = BriefFormatter(of, ends=ends, colour=colour)
    return [shown for entry in entries for shown in formatter.format_entry(entry)]


def test_each_state_is_one_line_and_what_follows_from_it_is_none() -> None:
    assert _log(
        state("CREATED", job="4", **ACCEPTED),
        *(state("CREATED", job=job["id"], **ACCEPTED) for job in GANG["jobs"]),
        state("STARTING", job="4.build", **PREPARE),
        state("BUILDING", job="4", **PREPARE),
        state("RUNNING", job="4.build"),
        line("Building your image", job="4.build"),
        state("FINISHED", job="4.build", exit_code=0, **DONE),
        state("STARTING", job="4.master", reason="PLACED", sentence="Starting on its host"),
        state("STARTING", job="4", reason="PLACED", sentence="Starting on its host"),
        state("RUNNING", job="4.master"),
        state("RUNNING", job="4"),
        line("step 1", job="4.worker.1"),
        state("FINISHED", job="4.master", exit_code=0, **DONE),
        state("FINISHED", job="4.worker.1", **STOPPED),
        state("KILLED", job="4.ps.1", message="exit code 137 (SIGKILL)", **(STOPPED | {"exit_code": 137})),
        state("FINISHED", job="4", **DONE),
    ) == [
        "4           CREATED",
        "4           BUILDING",
        "build    | Building your image",
        "4.build     FINISHED",
        "4           STARTING",
        "4.master    RUNNING",
        "4           RUNNING",
        "worker.1 | step 1",
        "4.master    FINISHED",
        "4.worker.1  FINISHED",
        "4.ps.1      KILLED",
    ]


def test_the_last_state_has_a_line_where_nothing_follows_the_log() -> None:
    ended = state("FINISHED", job="4", **DONE)
    assert (_log(ended), _log(ended, ends=False)) == ([], ["4           FINISHED"])


def test_a_reason_that_tells_something_new_is_beside_the_state() -> None:
    room = "needs 4 GPUs, and no host has more than 2"
    assert _log(
        state("FINISHED", job="4.build", reason="CACHED", sentence="The environment is already there", exit_code=0),
        state("PENDING", job="4", reason="NO_ROOM", sentence="Waiting for room in the pool", message=room),
        state("FAILED", job="4.worker.1", reason="EXIT_CODE", exit_code=9),
        state("PENDING", job="4", reason="RETRY", sentence="Another attempt follows", message="exit code 9"),
        state("RUNNING", job="4"),
        state("FAILED", job="4.worker.1", reason="EXIT_CODE", exit_code=9),
        state("KILLED", job="4.ps.1", reason="CASCADE", sentence="Stopped: this attempt failed", exit_code=143),
        state("KILLED", job="4.master", reason="NOT_STARTED", sentence="Never started"),
        state("FAILED", job="4", message="exit code 9\nand more", reason="EXIT_CODE"),
        ends=False,
    ) == [
        "4.build     FINISHED  The environment is already there",
        f"4           PENDING   {room}",
        "4.worker.1  FAILED    exit code 9",
        "4           PENDING   Another attempt follows",
        "4           RUNNING",
        "4.worker.1  FAILED    exit code 9",
        "4.ps.1      KILLED",
        "4           FAILED    exit code 9",
        "                      and more",
    ]


def test_one_cause_is_said_once() -> None:
    failed: dict[str, Any] = {
        "reason": "BUILD_FAILED",
        "sentence": "The environment could not be built",
        "message": FETCH,
    }
    single = _log(state("FAILED", job="4.build", exit_code=1, **failed), state("FAILED", job="4", **failed), ends=False)
    assert single == [f"4.build     FAILED    {FETCH}", "4           FAILED"]
    each = [state("FAILED", job=job, **failed) for job in ("5.1.build", "5.1", "5.2.build", "5.2", "5")]
    assert _log(*each, of=SET) == [f"5.1.build  FAILED    {FETCH}", "5.1  FAILED", "5.2  FAILED"]


def test_the_jobs_of_members_are_folded_into_their_member() -> None:
    gang = make_experiment("5.3", jobs=[make_job("5.3.master"), make_job("5.3.worker.1")])
    several = {**SET, "experiments": [*SET["experiments"], gang]}
    started = [
        state("CREATED", job="5.1", message="lr=0.1", **ACCEPTED),
        state("CREATED", job="5.1.train", **ACCEPTED),
        state("PENDING", job="5.1", reason="CONCURRENCY", sentence="Waiting for another experiment of the set"),
        state("STARTING", job="5.1", reason="PLACED", sentence="Starting on its host"),
        state("RUNNING", job="5.1.train"),
        state("RUNNING", job="5.1", message="lr=0.1"),
        line("step 1", job="5.1.train"),
        state("FAILED", job="5.1.train", reason="EXIT_CODE", exit_code=3),
        state("FAILED", job="5.1", reason="EXIT_CODE", message="exit code 3"),
        state("FAILED", job="5.3.worker.1", reason="EXIT_CODE", exit_code=3),
        state("KILLED", job="5.3.master", reason="CASCADE", sentence="Stopped", exit_code=143),
        state("FAILED", job="5.3", reason="EXIT_CODE", message="exit code 3"),
    ]
    assert _log(*started, of=several) == [  # type: ignore[arg-type]  # a copy of the shape with other members
        "5.1  RUNNING   lr=0.1",
        "5.1.train    | step 1",
        "5.1  FAILED    exit code 3",
        "5.3.worker.1  FAILED    exit code 3",
        "5.3  FAILED",
    ]


def test_a_single_job_says_that_the_experiment_runs() -> None:
    new = make_experiment(jobs=[])
    assert _log(
        state("CREATED", job="4", **ACCEPTED),
        state("CREATED", job="4.train", **ACCEPTED),
        state("RUNNING", job="4.train"),
        state("RUNNING", job="4"),
        line("step 1", job="4.train"),
        of=new,
    ) == ["4           CREATED", "4.train     RUNNING", "train | step 1"]


def test_a_batch_of_lines_looks_like_single_lines_and_no_text_leaves_its_line() -> None:
    said = ["plain", "", "a \x1b[31mred\x1b[0m one", "50 %\r100 %", "\u2028", "x\n4.master  FINISHED", "two  blanks "]
    for colour in (False, True):
        for texts in (said[:5], said[6:], ["plain", "words"]):
            alone = [line(text) for text in texts]
            body = "".join(f"{entry['time']} {entry['text']}\n" for entry in alone)
            batch: wire.LinesEntry = {"type": "lines", "cursor": "", "id": "4.master", "stream": "stdout", "text": body}
            assert _log(batch, colour=colour) == _log(*alone, colour=colour)
    assert [len(_log(line(text))) for text in said] == [1] * len(said)
    assert _log(line("x\n4.master  FINISHED")) == ["master   | x\\x0a4.master  FINISHED"]


def test_each_job_keeps_its_colour_in_states_and_lines() -> None:
    shown = _log(
        line("a", job="4.ps.1"),
        line("b"),
        state("RUNNING", job="4.master"),
        state("RUNNING", job="4.ps.1"),
        state("RUNNING", job="4"),
        colour=True,
    )
    ps, master, master_state, ps_state, experiment = (re.match(r"\x1b\[(\d+)m", text)[1] for text in shown)  # type: ignore[index]  # every line has a colour
    assert (ps, master, experiment) == (ps_state, master_state, "1")
    assert ps != master


@pytest.mark.parametrize(("lines", "is_in_view"), [(3, True), (2, True), (4, False)])
def test_the_last_lines_of_a_job_are_in_view_unless_others_printed_since(lines: int, *, is_in_view: bool) -> None:
    formatter = BriefFormatter(GANG, ends=True)
    for text, job in (("a", "4.ps.1"), ("b", "4.master"), ("c", "4.master")):
        formatter.format_entry(line(text, job=job))
    body = "2026-08-31T07:23:46Z d\n"
    formatter.format_entry({"type": "lines", "cursor": "", "id": "4.master", "stream": "stdout", "text": body})
    assert formatter.has_just_printed("4.master", lines) is is_in_view
    assert not formatter.has_just_printed("4.ps.1", 1)


@pytest.mark.parametrize(
    ("identity", "experiment"),
    [("4", "4"), ("4.worker.1", "4"), ("4.train", "4"), ("144.1", "144.1"), ("144.12.ps.1", "144.12")],
)
def test_an_id_names_its_experiment(identity: str, experiment: str) -> None:
    assert name_experiment(identity) == experiment
