"""Patterns that find metrics in lines: what counts, and that none of them holds the server up."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from riseml.base.errors import StoreError
from riseml.base.names import BUILD, JobName
from riseml.model import Frame, JobKey
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore
from riseml.store.metrics.line_patterns import LONGEST_LINE, PatternSearch
from riseml.store.metrics.metric_store import MetricStore
from tests.support.waiting import DEADLINE
from tests.unit.store.submissions import submit

KEY = JobKey(1, JobName("master"), 1)
CATASTROPHE = "a" * 40 + "!"


@pytest.fixture
def search() -> Iterator[PatternSearch]:
    made = PatternSearch()
    yield made
    made.close()


def test_each_pattern_is_searched_in_each_line(search: PatternSearch) -> None:
    patterns = {"loss": r"loss[:=] *(\S+)", "epoch": "^epoch ([0-9]+)"}
    found = search.search_lines(patterns, ["epoch 3 loss: 0.5", "nothing", "loss=x1", "Epoch 4"])
    assert found.values == {0: {"loss": "0.5", "epoch": "3"}, 2: {"loss": "x1"}}
    assert found.slow == frozenset()


@pytest.mark.parametrize("pattern", ["(a+)+$", "((?:a|aa)+)$", "((?:a*)*)b", "(?=(a+))(?:a*)*b"])
def test_a_pattern_that_takes_too_long_ends_alone(search: PatternSearch, pattern: str) -> None:
    patterns = {"bad": pattern, "good": "([0-9]+)$"}
    found = search.search_lines(patterns, ["a 1", CATASTROPHE, CATASTROPHE + " 2", "a 3"])
    assert found.slow == {"bad"}
    assert [found.values[line]["good"] for line in (0, 2, 3)] == ["1", "2", "3"]


def test_a_process_that_is_killed_is_started_again(search: PatternSearch) -> None:
    assert search.search_lines({"a": "(a)"}, ["a"]).values
    process = search._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE)
    assert search.search_lines({"a": "(a)"}, ["a"]).values
    process = search._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)  # it takes no order, and dies with it
    os.kill(process.pid, signal.SIGKILL)
    try:
        search.search_lines({"a": "(a)"}, ["a"])
    except StoreError as error:
        assert "tries again" in error.message  # it may have died before the order
    assert search.search_lines({"a": "(a)"}, ["a"]).values


def test_patterns_that_use_up_the_time_of_an_order_are_slow() -> None:
    """Each line takes far less than 0.1 s."""
    search = PatternSearch(processor_time=0.3)
    costly = "(?:a*)(?:a*)(?:a*)x([0-9])"
    patterns = {"one": costly, "good": "([0-9]+)$", "two": costly + "?"}
    found = search.search_lines(patterns, [*(f"{'a' * 60} {number}" for number in range(5000))])
    search.close()
    assert found.slow == {"one", "two"}
    assert len(found.values) == 5000


def test_without_an_answer_in_time_all_patterns_are_slow() -> None:
    search = PatternSearch(processor_time=1000.0, deadline=0.1)
    costly = "(?:a*)(?:a*)(?:a*)x([0-9])"
    found = search.search_lines({"one": costly, "two": "(b)"}, ["a" * 100] * 10_000)
    search.close()
    assert not found.values
    assert found.slow == {"one", "two"}


MakeStore = Callable[[Mapping[str, str]], tuple[LogStore, MetricStore]]


@pytest.fixture
def make_store(database: Database, experiments: ExperimentStore, tmp_path: Path) -> Iterator[MakeStore]:
    """Return a function that makes the stores of a server whose one experiment has these patterns."""
    submit(experiments)
    made: list[MetricStore] = []

    def make(patterns: Mapping[str, str]) -> tuple[LogStore, MetricStore]:
        logs = LogStore(tmp_path / "logs")
        made.append(MetricStore(database, logs, lambda _: patterns))
        return logs, made[-1]

    yield make
    for metrics in made:
        metrics.close()


def write(logs: LogStore, *texts: str, stream: int = 1) -> None:
    logs.append_frames(KEY, [Frame("2026-08-31T07:23:46.000000001Z", stream, text.encode()) for text in texts])


def test_values_in_lines_and_reports_are_metrics_in_the_order_of_the_log(make_store: MakeStore) -> None:
    patterns = {"loss": r"loss (\S+)", "step": r"step (\S+)"}
    logs, metrics = make_store(patterns)
    write(
        logs,
        "step 3 loss 0.5\n",
        'riseml.report {"loss": 0.25}\n',
        "step 4 lo",
        "ss 1e-3\n",
        "loss .5\n",
        "loss -inf\n",
    )
    write(
        logs,
        "[0] loss 7",
        '\x1eriseml.report {"step": 9, "loss": 8}\n',
        "step 1.5 loss 9\n",
        "loss 1_0\n",
        "loss 0x1\n",
    )
    write(logs, "loss " + "9" * 41 + "\n", "loss 1.2.3\n", " " * LONGEST_LINE + "loss 1\n", "step 5\n")
    write(logs, "loss 10\n", stream=2)
    write(logs, "loss 11\n", stream=3)
    values = metrics.read_values(1, "loss").values
    found = [(3, 0.5), (None, 0.25), (4, 0.001), (None, 0.5), (None, -float("inf"))]
    assert [(one.step, one.value) for one in values] == [*found, (None, 7), (9, 8), (None, 9), (None, 10)]
    assert metrics.read_summaries([1])[1]["loss"].count == 9


def test_of_a_progress_bar_the_state_that_the_log_shows_is_searched(make_store: MakeStore) -> None:
    logs, metrics = make_store({"loss": r"loss=(\S+)", "epoch": r"epoch (\d+)$"})
    write(logs, "\r".join(f" {number}%| loss={number}" for number in range(101)) + "\n")
    write(logs, "loss=7\rloss=8\r\x1b[K\r  \n", "loss=9\rdone\n", "epoch 3\r\n", "x" * LONGEST_LINE + "\rloss=5\r\n")
    assert [one.value for one in metrics.read_values(1, "loss").values] == [100, 8, 5]
    assert [one.value for one in metrics.read_values(1, "epoch").values] == [3]


def test_the_build_of_an_environment_reports_nothing(make_store: MakeStore) -> None:
    logs, metrics = make_store({"loss": r"loss (\S+)"})
    building = JobKey(1, BUILD, 1)
    texts = "loss 0.5\n", '\x1eriseml.report {"loss": 0.25}\n'
    logs.append_frames(building, [Frame("2026-08-31T07:23:46.000000001Z", 1, text.encode()) for text in texts])
    assert metrics.read_summaries([1]) == {}
    _, plain = make_store({})
    assert plain.read_summaries([1]) == {}


def test_a_slow_pattern_is_named_and_stays_off(make_store: MakeStore) -> None:
    patterns = {"bad": "(a+)+$", "good": "good ([0-9]+)"}
    logs, metrics = make_store(patterns)
    write(logs, "aaa\n", f"{CATASTROPHE}\n", "good 1\n", "aaa\n")
    assert set(metrics.read_tallies([1])[1].slow) == {"bad"}
    metrics.save()
    _, again = make_store(patterns)
    write(logs, f"{CATASTROPHE}\n", "good 2\n")
    found = again.read_tallies([1])[1]
    assert (set(found.slow), found.summaries["good"].count) == ({"bad"}, 2)


def test_patterns_come_from_the_plan(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    assert experiments.find_patterns(made.id) == {}
    assert experiments.find_patterns(made.id + 1) == {}
