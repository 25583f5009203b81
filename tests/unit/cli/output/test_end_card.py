"""The card below a log."""

from __future__ import annotations

from typing import Any

import pytest

from riseml import wire
from riseml.cli.output.end_card import ShownLog, build_end_card
from riseml.cli.output.style import Style
from tests.unit.cli.fake_server import NOW, end, make_experiment, make_search

NOTHING = ShownLog(lambda _: False, lambda _job, _lines: False)
EVERYTHING = ShownLog(lambda _: True, lambda _job, _lines: True)
BUILD_MESSAGE = "the image none:1 is not on the host and cannot be fetched: no such host"


def _metric(name: str, last: float, least: float, most: float) -> wire.MetricView:
    metric = {"name": name, "count": 2, "last": last, "last_step": 1, "last_at": NOW, "min": least, "min_step": 0}
    return {**metric, "max": most, "max_step": 1, "attempt": 1, "not_finite": 0}  # type: ignore[typeddict-item]  # the fields of the shape, by name


METRICS = [_metric("accuracy", 0.981, 0.5, 0.985), _metric("loss", 0.02, 0.02, 0.02)]


def _card(entry: wire.EndEntry, shown: ShownLog = NOTHING, width: int | None = None, **changes: Any) -> list[str]:
    experiment = make_experiment(ended_at="2026-08-31T07:25:46Z", **changes)
    return build_end_card(entry, experiment, shown, Style(width=width))


def test_a_good_end_names_metrics_output_and_what_to_type_next() -> None:
    assert _card(end(), metrics=METRICS) == [
        "",
        "Experiment 4 FINISHED after 2m00s",
        "  accuracy  0.981 (0.5 to 0.985)",
        "  loss      0.02",
        "  Output    /output/paul/ai-toaster/4",
        "  Next      riseml plot 4",
        "            riseml results 4",
    ]


def test_a_good_end_that_the_code_did_not_choose_says_why() -> None:
    told = _card(end(reason="NOT_FINITE", message="loss is nan at step 19"))
    assert told[1] == "Experiment 4 FINISHED after 2m00s: loss is nan at step 19"
    assert _card(end(message="loss is nan at step 19"))[1] == "Experiment 4 FINISHED after 2m00s"


FAILED = end("FAILED", exit_code=9, cause="worker.1", message="exit code 9")
BUILD_FAILED = end("FAILED", exit_code=1, cause="build", message=BUILD_MESSAGE)
KILLED = end("KILLED", exit_code=None, message="Killed by a user")
MEMBER = make_experiment("4.1", metrics=METRICS)


@pytest.mark.parametrize(
    ("entry", "changes", "following"),
    [
        (end(), {}, ["riseml ls output://4", "riseml show 4"]),
        (FAILED, {}, ["riseml logs 4.worker.1 --tail 50", "riseml rerun 4"]),
        (end("FAILED", message="Ran longer"), {}, ["riseml logs 4 --tail 50", "riseml rerun 4"]),
        (BUILD_FAILED, {}, ["riseml logs 4.build --tail 50", "riseml train"]),
        (KILLED, {}, ["riseml logs 4 --tail 50", "riseml rerun 4"]),
        (KILLED, {"metrics": METRICS}, ["riseml logs 4 --tail 50", "riseml results 4"]),
        (end(), {"type": "set", "experiments": [MEMBER]}, ["riseml plot 4", "riseml results 4"]),
        (end(), {"type": "set"}, ["riseml results 4", "riseml status 4"]),
        (
            end("FAILED", cause="1.train"),
            {"type": "set", "experiments": [MEMBER]},
            ["riseml logs 4.1.train --tail 50", "riseml results 4"],
        ),
        (KILLED, {"type": "notebook"}, []),
    ],
)
def test_the_next_commands_fit_the_end(entry: wire.EndEntry, changes: dict[str, Any], following: list[str]) -> None:
    shown = [text.strip().removeprefix("Next").strip() for text in _card(entry, **changes)]
    assert [text for text in shown if text.startswith("riseml ")] == following


def test_what_the_log_has_shown_does_not_come_again() -> None:
    changes: dict[str, Any] = {
        "cause": "build",
        "last_lines": ["Fetching image none:1"],
        "advice": "look up the registry",
    }
    told = _card(BUILD_FAILED, **changes)
    assert told[1:4] == [
        f"Experiment 4 FAILED after 2m00s: 4.build: {BUILD_MESSAGE}",
        "  Last lines of 4.build:",
        "    Fetching image none:1",
    ]
    assert _card(BUILD_FAILED, EVERYTHING, **changes)[1:3] == [
        "Experiment 4 FAILED after 2m00s: 4.build",
        "  Advice  look up the registry",
    ]
    members = [make_experiment(f"4.{at}", state="FAILED", message=BUILD_MESSAGE) for at in (1, 2)]
    failed = end("FAILED", cause="1.build", message="0 of 2 finished, 2 failed")
    for shown, cause in ((NOTHING, f"4.1 and 1 other: {BUILD_MESSAGE}"), (EVERYTHING, "4.1 and 1 other")):
        assert f"  Failed  {cause}" in _card(failed, shown, type="set", experiments=members)


def test_a_set_names_the_best_trial_once() -> None:
    best: wire.BestTrial = {"id": "4.3", "value": 0.98, "parameters": {"lr": "0.1"}, "runs": 1}
    changes: dict[str, Any] = {"type": "set", "search": make_search(best=best)}
    assert "  Best    4.3 accuracy 0.98 (lr=0.1)" in _card(KILLED, **changes)
    told = end(message="2 of 2 finished, best 4.3 accuracy 0.98 (lr=0.1)")
    assert sum("4.3 accuracy" in text for text in _card(told, **changes)) == 1


def test_foreign_text_stays_in_its_row_and_long_advice_fits_the_terminal() -> None:
    odd = [_metric("損失" * 20 + "\x1b[2J\n", 1, 1, 1), *(_metric(f"m{at}", 1, 0, 2) for at in range(8))]
    advice = "install the package that brings it, such as `pip install opencv-python`, in train.install"
    for width in (60, 80, 200):
        shown = _card(FAILED, width=width, metrics=odd, advice=advice, output="/output/" + "long/" * 40)
        assert not any("\x1b" in text or "\n" in text for text in shown)
        folded = [text for text in shown if "output" not in text]
        assert max(map(len, folded)) <= width
        joined = " ".join(text.strip() for text in shown)
        assert ("and 4 more metrics" in joined, "brings it," in joined, "long/long" in joined) == (True, True, True)
