"""Saved outputs, as `status` and `show` describe them."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment
from tests.unit.cli.saved_outputs import SAVED, SUMMARY


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
