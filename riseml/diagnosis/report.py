"""A diagnosis as it is kept, and as lines for people. Pure."""

from __future__ import annotations

import json

from riseml import wire
from riseml.diagnosis.verdicts import RankFinding, StallDiagnosis

DIAGNOSIS_FILE = "diagnosis.json"
"""The diagnosis in an output folder."""

REPORT_FILE = "diagnosis.txt"
"""The same as text."""

_CERTAINTY = {
    "certain": "certain: the kernel says so",
    "likely": "likely: every sample says so",
    "possible": "possible: samples differ, or not everything could be read",
}


def show_diagnosis(  # a field each
    diagnosis: StallDiagnosis, *, identity: str, time: str, attempt: int, by_stall: bool, seconds: float
) -> wire.DiagnosisView:
    """Return a diagnosis as the API shows it."""
    return {
        "id": identity,
        "time": time,
        "attempt": attempt,
        "by_stall": by_stall,
        "seconds": round(seconds, 1),
        "cause": diagnosis.cause.value,
        "certainty": diagnosis.certainty.value,
        "sentence": diagnosis.sentence,
        "culprits": list(diagnosis.culprits),
        "evidence": list(diagnosis.evidence),
        "ranks": [_show_rank(rank) for rank in diagnosis.ranks],
    }


def list_report_lines(diagnosis: wire.DiagnosisView) -> list[str]:
    """Return a diagnosis as lines: the sentence, how certain it is, and the evidence."""
    certainty = _CERTAINTY.get(diagnosis["certainty"], diagnosis["certainty"])
    return [diagnosis["sentence"], "", f"Certainty: {certainty}", "", *(f"- {row}" for row in diagnosis["evidence"])]


def list_diagnosis_files(diagnosis: wire.DiagnosisView) -> tuple[tuple[str, bytes], ...]:
    """Return the files of a diagnosis in an output: names and contents."""
    text = "\n".join([*list_report_lines(diagnosis), ""])
    return (
        (DIAGNOSIS_FILE, (json.dumps(diagnosis, indent=2) + "\n").encode()),
        (REPORT_FILE, text.encode("utf-8", "replace")),
    )


def _show_rank(rank: RankFinding) -> wire.RankFindingView:
    return {
        "rank": rank.rank,
        "job": rank.job,
        "wait": None if rank.kind is None else rank.kind.value,
        "place": None if rank.place is None else str(rank.place),
        "text": rank.words,
        "samples": rank.samples,
        "of": rank.of,
        "state": rank.state,
        "helpers": list(rank.helpers),
    }
