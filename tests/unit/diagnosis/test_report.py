"""A diagnosis as it is kept in an output, and printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from riseml import wire
from riseml.cli.output.diagnosis_view import list_diagnosis
from riseml.diagnosis.report import list_diagnosis_files, show_diagnosis
from riseml.diagnosis.verdicts import diagnose
from tests.unit.diagnosis.test_verdicts import DATA, REDUCE, repeat_sample, workers

SENTENCE = (
    "worker.2 left the loop: it waits for data in DataLoader, __next__ (data.py:41) (3 of 3 samples); worker.1 waits"
    " for it in all_reduce (train.py:88)"
)


def make_view(data: str = DATA) -> wire.DiagnosisView:
    return show_diagnosis(
        diagnose(repeat_sample(*workers(REDUCE, data))),
        identity="4",
        time="2026-08-31T07:23:46.000000Z",
        attempt=1,
        by_stall=True,
        seconds=6.54,
    )


def test_the_output_gets_the_diagnosis_and_its_text() -> None:
    files = dict(list_diagnosis_files(make_view()))
    kept = json.loads(files["diagnosis.json"])
    assert kept == make_view()
    assert (kept["cause"], kept["culprits"], kept["seconds"]) == ("left-loop", ["worker.2"], 6.5)
    assert [rank["wait"] for rank in kept["ranks"]] == ["collective", "data"]
    assert files["diagnosis.txt"].decode().splitlines() == [
        SENTENCE,
        "",
        "Certainty: likely: every sample says so",
        "",
        "- worker.1: it waits for the other ranks in all_reduce (train.py:88) (3 of 3 samples)",
        "- worker.2: it waits for data in DataLoader, __next__ (data.py:41) (3 of 3 samples)",
    ]


def test_a_terminal_gets_no_sequence_of_a_job() -> None:
    lines = list_diagnosis(
        make_view(DATA.replace("data.py", "d\x1b]0;x\x07.py")), datetime(2026, 8, 31, 7, 25, tzinfo=UTC)
    )
    assert not any("\x1b" in line or "\x07" in line for line in lines)
    assert lines[-1] == "Looked at 1 m ago, at a stall, in 6.5 s"
