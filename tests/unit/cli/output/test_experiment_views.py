"""Experiments and sets, in a list and alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from riseml import wire
from riseml.cli.output.experiment_views import list_experiment, list_experiments
from riseml.cli.output.style import Style
from riseml.cli.output.widths import measure_width
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment, make_job, make_search
from tests.unit.cli.result_rows import make_metric

NOW = datetime(2026, 8, 31, 8, tzinfo=UTC)
PLAIN = Style(colour=False, width=200)


def test_status_says_what_a_companion_is() -> None:
    one = make_experiment("9", type="tensorboard", shows=["4", "144"], output="", jobs=[])
    assert "TensorBoard of 4, 144" in "\n".join(list_experiments([one], NOW, PLAIN))
    shown = "\n".join(list_experiment(one, NOW, PLAIN))
    assert "Type: TensorBoard of 4, 144" in shown
    assert "Output" not in shown


def test_status_has_the_fields_of_riseml_1() -> None:
    times = {"started_at": "2026-08-31T07:00:00Z", "ended_at": "2026-08-31T07:50:00Z"}
    jobs = [make_job("4.train", state="FINISHED", exit_code=0, **times)]
    lines = ["pip list", "python train.py \\\n  --lr 0.1\n", *(f"echo {number}" for number in range(9))]
    single = make_experiment(jobs=jobs, run=[{"jobs": ["train"], "lines": lines}], concurrency=3)
    shown = list_experiment(single, NOW, PLAIN)
    at = shown.index("Run Commands:")
    assert shown[at + 1 : at + 5] == ["  pip list", "  python train.py \\", "    --lr 0.1", "  echo 0"]
    assert shown[at + 11] == "  ... 2 more; `riseml status -l 4` shows all"
    assert "Concurrency: 3" in shown
    assert "  echo 8" in list_experiment(single, NOW, PLAIN, long=True)
    head, row = (re.split(" {2,}", row)[-2:] for row in shown[-2:])
    assert (head, [age[:4] for age in row]) == (["STARTED", "FINISHED"], ["1 h", "10 m"])
    roles = [{"jobs": ["learner.1"], "lines": ["a"]}, {"jobs": ["actor.1", "actor.2"], "lines": ["b\x1b[2J"]}]
    shown = list_experiment(make_experiment(run=roles), NOW, PLAIN)
    at = shown.index("Run Commands of learner.1:")
    assert shown[at + 1 : at + 4] == ["  a", "Run Commands of actor.1, actor.2:", "  b"], "escapes are gone"


def test_status_shows_where_tensorboard_is() -> None:
    jobs = [make_job("4.tensorboard")]
    here = make_experiment(jobs=jobs, tensorboard="http://127.0.0.1:40001")
    opens = "`riseml tensorboard 4` opens it"
    assert f"TensorBoard: http://127.0.0.1:40001 ({opens})" in list_experiment(here, NOW, PLAIN)
    assert f"TensorBoard: {opens}" in list_experiment(make_experiment(jobs=jobs), NOW, PLAIN)


def test_status_of_a_set(riseml: Riseml, fake_server: FakeServer) -> None:
    members = [make_experiment(f"144.{number}", parameters={"lr": f"1e-{number}", "n": "2"}) for number in (1, 2)]
    fake_server.experiments["144"] = make_experiment("144", type="set", jobs=[], experiments=members)
    lines = riseml("status", "144").out.splitlines()
    assert lines[-3].split() == ["EXP", "ID", "STATE", "AGE", "TIME", "PARAMS"]
    assert lines[-1].startswith("144.2   RUNNING")
    assert lines[-1].endswith("  lr=1e-2"), "what differs"
    assert "Parameters: n=2" in lines, "what all members have alike"
    assert lines[1:4] == ["Type: Set", "Experiments: 2 running", "State: RUNNING"]


def test_the_long_list_counts_jobs_without_the_build_and_experiments_of_a_set(
    riseml: Riseml, fake_server: FakeServer
) -> None:
    jobs = [make_job("4.build", state="FINISHED"), make_job("4.master")]
    members = [
        make_experiment("144.1", parameters={"decay": "0.5", "lr": "0.1"}, state="FAILED"),
        make_experiment("144.2", parameters={"decay": "0.5", "lr": "0.2"}, jobs=[make_job("144.2.train")]),
    ]
    fake_server.experiments = {
        "4": make_experiment("4", jobs=jobs),
        "144": make_experiment("144", type="set", jobs=[], parameters={}, experiments=members),
    }
    rows = {row.split()[0]: row for row in riseml("status", "-l").out.splitlines()}
    assert "1/1 run" in rows["4"]
    assert "1/2 ended" in rows["144"]
    assert rows["144"].endswith("decay=0.5")
    assert rows["144.2"].endswith("  lr=0.2")


def test_status_shows_metrics(riseml: Riseml, fake_server: FakeServer) -> None:
    values = {"accuracy": (0.5, 0.25), "loss": (1 / 3,)}
    metrics = [make_metric(name, *found) for name, found in values.items()]
    fake_server.experiments["4"] = make_experiment(metrics=metrics)
    assert "Metrics: accuracy=0.25, loss=0.333333\n" in riseml("status", "4").out
    members = [make_experiment("4.1", metrics=metrics), make_experiment("4.2")]
    fake_server.experiments["4"] = make_experiment(type="set", experiments=members, jobs=[])
    rows = [line.split() for line in riseml("status", "4").out.splitlines()[-3:]]
    assert rows[0] == ["EXP", "ID", "STATE", "AGE", "TIME", "accuracy", "PARAMS"]
    assert [row[-1] for row in rows[1:]] == ["0.25", "-"]
    search = make_search()
    fake_server.experiments["4"] = make_experiment(type="set", experiments=members, jobs=[], search=search)
    assert riseml("status", "4").out.splitlines()[-2].split()[-1] == "0.5"
    search = make_search(objective="mean(5)")
    fake_server.experiments["4"] = make_experiment(type="set", experiments=members, jobs=[], search=search)
    out = riseml("status", "4").out
    assert "Search Config: grid, maximize accuracy by its mean(5), seed 0\n" in out
    assert out.splitlines()[-2].split()[-1] == "0.25", "the last value: the best one does not count"


def _make_sweep() -> list[wire.ExperimentView]:
    """Return two experiments that differ in one parameter, and a set of a search."""
    fates = [("FINISHED", "COMPLETED")] * 3 + [("FINISHED", "STOPPED_EARLY")] * 2 + [("FAILED", "EXIT_CODE")]
    fates += [("RUNNING", "RUNNING"), ("PENDING", "NO_ROOM"), ("KILLED", "KILLED_BY_USER")]
    members = [make_experiment(f"6.{at}", state=state, reason=why) for at, (state, why) in enumerate(fates, 1)]
    best: wire.BestTrial = {"id": "6.3", "value": 0.98765432, "parameters": {"lr": "0.1"}, "runs": 1}
    times = {"started_at": "2026-08-31T07:23:46Z", "ended_at": "2026-08-31T07:27:06Z", "state": "FINISHED"}
    return [
        make_experiment(
            "4", parameters={"lr": "0.1", "epochs": "20"}, main_metric={"name": "loss", "last": 0.25}, **times
        ),
        make_experiment("5", parameters={"lr": "0.2", "epochs": "20"}, main_metric={"name": "loss", "last": None}),
        make_experiment(
            "6", type="set", jobs=[], parameters={}, experiments=members, search=make_search(best=best), project="損失"
        ),
    ]


def test_the_list_has_time_metric_what_differs_and_what_became_of_a_set() -> None:
    rows = [re.split(" {2,}", row) for row in list_experiments(_make_sweep(), NOW, PLAIN)]
    assert rows == [
        ["ID", "PROJECT", "STATE", "AGE", "TIME", "METRIC", "TYPE", "PARAMS"],
        ["4", "ai-toaster", "FINISHED", "36 m", "3m20s", "loss=0.25", "Experiment", "lr=0.1"],
        ["5", "ai-toaster", "RUNNING", "36 m", "36m14s", "loss=nan", "Experiment", "lr=0.2"],
        [
            *("6", "損失", "RUNNING", "36 m", "36m14s", "accuracy=0.9877"),
            "Set: 3 finished, 1 failed, 1 killed, 2 stopped early, 1 running, 1 waiting",
        ],
    ]
    plain = "\n".join(list_experiments([make_experiment()], NOW, PLAIN))
    assert "METRIC" not in plain, "a column with nothing to say is left out"
    waited = make_experiment(waited=60.0, ended_at="2026-08-31T07:27:06Z", state="FAILED")
    assert "2m20s" in list_experiments([waited], NOW, PLAIN)[1]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("long", [True, False])
def test_a_narrow_terminal_has_fewer_columns_and_no_broken_row(width: int, *, long: bool) -> None:
    experiments = _make_sweep()
    rows = list_experiments(experiments, NOW, Style(width=width), long=long)
    assert max(map(measure_width, rows)) <= width
    assert len(rows) == 1 + (12 if long else 3)
    assert [name in rows[0] for name in ("ID", "STATE")] == [True, True]
    assert ("REASON" in rows[0]) is (long and width == 200)
    jobs = [make_job(f"4.{name}", reason="NO_LONGER_NEEDED") for name in ("master", "worker.10")]
    shown = list_experiment(make_experiment(jobs=jobs), NOW, Style(width=width))
    table = shown[shown.index("") + 1 :]
    assert max(map(measure_width, table)) <= width
    assert "4.worker.10" in table[-1]


def test_the_jobs_of_an_ended_experiment_have_ended(riseml: Riseml, fake_server: FakeServer) -> None:
    jobs = [make_job("4.build", state="FINISHED"), make_job("4.train", state="FINISHED")]
    fake_server.experiments["4"] = make_experiment(state="FINISHED", jobs=jobs)
    assert "1/1 ended" in riseml("status", "-a", "-l").out


def test_a_number_of_rows_counts_a_set_once(riseml: Riseml, fake_server: FakeServer) -> None:
    experiments = _make_sweep()
    fake_server.experiments = {experiment["id"]: experiment for experiment in experiments}
    rows = riseml("status", "-a", "-n", "2").out.splitlines()
    assert [row.split()[0] for row in rows] == ["ID", "5", "6", "These"]
    long = riseml("status", "-a", "-l", "-n", "2").out.splitlines()
    assert [row.split()[0] for row in long[:3]] == ["ID", "5", "6"]
    assert len(long) == 1 + 2 + 9 + 1, "with all members of the set"
