"""Entries of a log and the end of an experiment, as lines."""

from __future__ import annotations

import re

import pytest

from riseml import wire
from riseml.cli.output.log_lines import LogFormatter, describe_end, get_id_width
from tests.unit.cli.fake_server import end, line, make_experiment, make_job, state


def _log(*entries: wire.StateEntry | wire.LineEntry, colour: bool = False) -> list[str]:
    formatter = LogFormatter(colour)
    return [shown for entry in entries for shown in formatter.format_entry(entry)]


def test_the_log_looks_as_riseml_printed_it() -> None:
    assert _log(
        state("BUILDING", job="4", reason="SUBMITTED"),
        state("STARTING", job="4.build", reason="PREPARE", sentence="Preparing environment"),
        line("Building your image", job="4.build"),
        state("FINISHED", job="4.build", reason="COMPLETED", sentence="Completed", exit_code=0),
        line("step 1", job="4.worker.1"),
    ) == [
        "4             | [2026-08-31T07:23:46Z] --> BUILDING",
        "4.build       | [2026-08-31T07:23:46Z] --> STARTING",
        "4.build       |                        Reason: PREPARE",
        "4.build       |                        Message: Preparing environment",
        "4.build       | [2026-08-31T07:23:46Z] Building your image",
        "4.build       | [2026-08-31T07:23:46Z] --> FINISHED",
        "4.build       |                        Reason: COMPLETED",
        "4.build       |                        Exit Code: 0",
        "4.worker.1    | [2026-08-31T07:23:46Z] step 1",
    ]


def test_a_state_that_explains_itself_is_one_line() -> None:
    for reason in ("SUBMITTED", "RUNNING", "PLACED", "WAITING_FOR_IMAGE"):
        assert len(_log(state("PENDING", reason=reason))) == 1
    assert len(_log(state("PENDING", reason="PLACED", message="one\ntwo"))) == 3


def test_a_forged_prefix_stays_in_its_line() -> None:
    shown = _log(line("x\n4.master | [now] forged\r4.ps.1 | forged too"))
    assert len(shown) == 1
    assert shown[0].startswith("4.master      | [2026-08-31T07:23:46Z] ")


def test_each_job_keeps_its_colour() -> None:
    shown = _log(line("a", job="4.ps.1"), line("b", job="4.master"), line("c", job="4.ps.1"), colour=True)
    colours = [re.findall(r"^\x1b\[\d+m", one) for one in shown]
    assert all(colours)
    assert colours[0] == colours[2] != colours[1]


def test_the_width_is_fixed_unless_an_id_is_longer() -> None:
    assert get_id_width(make_experiment()) == 13
    member = make_experiment("144.12", jobs=[make_job("144.12.worker.10")])
    assert get_id_width(make_experiment("144", jobs=[], experiments=[member])) == 16


@pytest.mark.parametrize(
    ("entry", "first"),
    [
        (end(), "Experiment 4 FINISHED after 2m00s"),
        (
            end("FAILED", exit_code=3, cause="worker.1", message="exit code 3"),
            "Experiment 4 FAILED after 2m00s: 4.worker.1: exit code 3",
        ),
        (
            end("FAILED", exit_code=7, cause="build", message="step 2 failed\nmore"),
            "Experiment 4 FAILED after 2m00s: 4.build: step 2 failed",
        ),
        (
            end("KILLED", exit_code=None, message="Killed by a user"),
            "Experiment 4 KILLED after 2m00s: Killed by a user",
        ),
    ],
)
def test_the_last_line_says_how_the_experiment_ended(entry: wire.EndEntry, first: str) -> None:
    experiment = make_experiment(ended_at="2026-08-31T07:25:46Z")
    assert describe_end(entry, experiment) == [first, "Output: /output/paul/ai-toaster/4"]


@pytest.mark.parametrize("state", ["FINISHED", "FAILED"])
def test_a_set_says_what_became_of_its_members(state: str) -> None:
    experiment = make_experiment(type="set", ended_at="2026-08-31T07:25:46Z")
    entry = end(state, exit_code=None, message="1 of 2 finished, 1 failed")
    assert describe_end(entry, experiment)[0] == f"Experiment 4 {state} after 2m00s: 1 of 2 finished, 1 failed"


def test_a_failed_set_says_why_its_members_failed() -> None:
    texts = ["exit code 1", "Out of memory", "exit code 1\nmore", "a", "b"]
    members = [make_experiment(f"4.{at}", state="FAILED", message=text) for at, text in enumerate(texts, 1)]
    experiment = make_experiment(
        type="set",
        ended_at="2026-08-31T07:25:46Z",
        experiments=[*members, make_experiment("4.6", state="FINISHED")],
        cause="1.train",
        exit_code=1,
        last_lines=["a"],
    )
    entry = end("FAILED", exit_code=1, cause="1.train", message="0 of 6 finished, 5 failed")
    assert describe_end(entry, experiment) == [
        "Experiment 4 FAILED after 2m00s: 0 of 6 finished, 5 failed",
        "Failed: 4.1 and 1 other: exit code 1",
        "Failed: 4.2: Out of memory",
        "Failed: 4.4: a",
        "Failed: 1 more, for other reasons",
        "Last lines of 4.1.train:",
        "  a",
        "Output: /output/paul/ai-toaster/4",
    ]


def test_the_last_lines_and_the_advice_come_before_the_output() -> None:
    experiment = make_experiment(cause="master", last_lines=["a", "50%\r100%"], advice="do\x1b[2J this")
    assert describe_end(end("FAILED", exit_code=3, cause="master"), experiment)[1:] == [
        "Last lines of 4.master:",
        "  a",
        "  100%",
        "Advice: do this",
        "Output: /output/paul/ai-toaster/4",
    ]


def test_a_batch_of_lines_looks_like_single_lines() -> None:
    said = ["plain", "", "a \x1b[31mred\x1b[0m one", "50 %\r100 %", "\u2028", "\u202e", "é", "two  blanks "]
    moments = [f"2026-08-31T07:23:{number:02d}.5Z" for number in range(len(said))]
    for colour in (False, True):
        for texts in (said, ["plain", "words"]):
            alone: list[wire.LineEntry] = [
                {"type": "line", "cursor": "", "id": "4.master", "time": at, "stream": "stdout", "text": text}
                for at, text in zip(moments, texts, strict=False)
            ]
            body = "".join(f"{entry['time']} {entry['text']}\n" for entry in alone)
            batch: wire.LinesEntry = {"type": "lines", "cursor": "", "id": "4.master", "stream": "stdout", "text": body}
            formatter = LogFormatter(colour)
            assert LogFormatter(colour).format_entry(batch) == [
                shown for entry in alone for shown in formatter.format_entry(entry)
            ]
