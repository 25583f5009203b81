"""What users see of saved outputs."""

from __future__ import annotations

import json

from riseml import wire
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment

SUMMARY: wire.SavedSummary = {
    "place": "s3://runs/paul/toaster/4",
    "state": "saved",
    "saved_at": "2026-08-31T07:23:46Z",
    "files": 1,
    "bytes": 62928,
    "missing": 0,
    "trouble": "",
    "done": 0,
    "total": 0,
    "restored": {"attempt": 2, "files": 3, "bytes": 70, "kept": 0},
}
SAVED: wire.SavedView = {
    **SUMMARY,
    "id": "4",
    "manifest": [
        {
            "path": "model.npy",
            "size": 62928,
            "sha256": "7aebd29023b9" + "0" * 52,
            "changed": "2026-08-31T07:23:46Z",
            "url": "s3://runs/paul/toaster/4/model.npy",
        }
    ],
    "missing_paths": ["late\x1b[2J"],
    "left_out": [{"path": "a\nb", "why": "no object can have its name"}],
}


def test_status_says_what_is_saved_and_what_an_attempt_began_with(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /experiments/4"] = (200, make_experiment(id="4", saved=SUMMARY))
    shown = riseml("status", "4").out
    assert "Saved: s3://runs/paul/toaster/4: 1 file, 62,928 bytes, " in shown
    assert "Restored: attempt 2 began with 3 files from the store (70 bytes)" in shown


def test_status_says_what_is_missing_and_what_to_do(riseml: Riseml, fake_server: FakeServer) -> None:
    missing = {**SUMMARY, "state": "incomplete", "missing": 2, "trouble": "the store answers 503"}
    fake_server.answers["GET /experiments/4"] = (200, make_experiment(id="4", saved=missing))
    shown = riseml("status", "4").out
    assert "NOT complete: 2 files of the output are not in s3://runs/paul/toaster/4; " in shown
    assert "; the last try failed: the store answers 503; `riseml save 4` copies it again" in shown


def test_a_list_of_what_is_saved_has_no_foreign_characters(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /experiments/4/saved"] = (200, SAVED)
    shown = riseml("show", "4", "--saved").out
    assert riseml("status", "4", "--saved").out == shown
    assert "62,928  7aebd29023b9  model.npy" in shown
    assert "not saved: late" in shown
    assert "\x1b" not in shown
    assert json.loads(riseml("show", "4", "--saved", "--json").out) == SAVED


def test_save_ends_with_an_error_when_something_is_not_there(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /experiments/4/save"] = (200, {**SAVED, "state": "saving"})
    fake_server.answers["GET /experiments/4/saved"] = (200, SAVED)
    assert riseml("save", "4").code == 0
    fake_server.answers["GET /experiments/4/saved"] = (200, {**SAVED, "state": "incomplete", "trouble": "no bucket"})
    result = riseml("save", "4")
    assert (result.code, "NOT complete" in result.out) == (5, True)
