"""Answers of any program: each wrong one is named by its place, and what a newer server adds stays in the answer."""

from __future__ import annotations

import sys
import threading
from typing import Any, cast

import pytest

from riseml import wire
from riseml.client.answer_check import WIRE_NAMES, AnswerCheck, WrongAnswer
from tests.unit.cli.fake_server import end, line, make_experiment, make_job, make_search, state


def check(answer: Any, shape: type[Any] = WIRE_NAMES.ExperimentList, *, allows_absent: bool = False) -> Any:
    return AnswerCheck(allows_absent=allows_absent).check(answer, shape)


def without(value: Any, key: str) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if name != key}


@pytest.mark.parametrize(
    ("answer", "difference"),
    [
        (None, "it is null"),
        ([], "it is a list"),
        ("4", "it is a text"),
        ({}, "experiments is absent"),
        ({"experiments": {}}, "experiments is an object"),
        ({"experiments": [make_experiment(), None]}, r"experiments\[1\] is null"),
        ({"experiments": [make_experiment(id=4)]}, r"experiments\[0\].id is a number"),
        ({"experiments": [make_experiment(closed="no")]}, r"experiments\[0\].closed is a text"),
        ({"experiments": [make_experiment(exit_code=True)]}, r"experiments\[0\].exit_code is a truth value"),
        ({"experiments": [make_experiment(exit_code=1.5)]}, r"experiments\[0\].exit_code is a number"),
        ({"experiments": [make_experiment(notes=["a", None])]}, r"experiments\[0\].notes\[1\] is null"),
        ({"experiments": [make_experiment(parameters={"lr": 1})]}, r"experiments\[0\].parameters.lr is a number"),
        ({"experiments": [make_experiment(parameters={"k" * 999: 1})]}, r"parameters.k{100} is a number"),
        ({"experiments": [make_experiment(search={})]}, r"experiments\[0\].search.method is absent"),
        ({"experiments": [make_experiment(jobs=[{}])]}, r"experiments\[0\].jobs\[0\].id is absent"),
        (
            {"experiments": [make_experiment(experiments=[make_experiment(jobs=[without(make_job("4.a"), "oom")])])]},
            r"experiments\[0\].experiments\[0\].jobs\[0\].oom is absent",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_answer_is_named_by_its_place(answer: object, difference: str) -> None:
    with pytest.raises(WrongAnswer, match=rf"{difference}$"):
        check(answer)


@pytest.mark.parametrize(
    ("key", "row", "difference"),
    [
        ("parameters", {"name": "lr", "values": ["0.1"]}, r"parameters\[0\] has 1 values for 2 experiments"),
        ("code", {"path": "a.py", "versions": []}, r"code\[0\] has 0 values for 2 experiments"),
        ("metrics", {"name": "loss", "metrics": [None] * 3}, r"metrics\[0\] has 3 values for 2 experiments"),
    ],
)
def test_a_comparison_has_a_value_for_each_experiment(key: str, row: object, difference: str) -> None:
    head = {"id": "4", "project": "p", "state": "FINISHED", "started_at": None, "ended_at": None, "seconds": None}
    lists: dict[str, Any] = {name: [] for name in ("parameters", "config", "environment", "code", "metrics")}
    comparison = {"experiments": [head, head], **lists, "code_unknown": []}
    assert check(comparison, WIRE_NAMES.ComparisonView) is comparison
    with pytest.raises(WrongAnswer, match=difference):
        check({**comparison, key: [row]}, WIRE_NAMES.ComparisonView)


def test_a_whole_answer_of_a_newer_server_is_returned_as_it_came() -> None:
    search = make_search(best={"id": "4.1", "value": 1, "parameters": {}, "runs": 1, "later": [1]}, goal="a third one")
    experiment = make_experiment(type="later", state="PAUSED", search=search, later={"a": None})
    answer = {"experiments": [experiment], "total": 1}
    assert check(answer) is answer
    assert cast("Any", experiment)["later"] == {"a": None}


def test_only_a_server_of_another_version_may_lack_keys() -> None:
    older = {"experiments": [without(make_experiment(), "saved")]}
    with pytest.raises(WrongAnswer, match="saved is absent"):
        check(older)
    assert check(older, allows_absent=True) is older
    with pytest.raises(WrongAnswer, match=r"experiments\[0\].notes is null"):
        check({"experiments": [make_experiment(notes=None)]}, allows_absent=True)
    with pytest.raises(WrongAnswer, match="version is absent"):
        check({"pid": 7, "executor": "docker", "active": 0}, WIRE_NAMES.ServerView, allows_absent=True)


def test_a_key_that_is_not_required_is_checked_where_it_is() -> None:
    git: dict[str, Any] = {"revision": "a", "clean": None}
    assert check(git, WIRE_NAMES.GitState) is git
    with pytest.raises(WrongAnswer, match=r"missing\[0\] is a number"):
        check(git | {"missing": [1]}, WIRE_NAMES.GitState)


def test_entries_of_a_log_are_checked_by_their_types() -> None:
    checker = AnswerCheck()
    for entry in (line("hello"), state("RUNNING"), end(), {"type": "later", "cursor": "4", "more": []}):
        assert checker.check_entry(entry) is entry
    wrong: list[Any] = [3, {}, {"type": [], "cursor": "4"}, {"type": "later"}, line("hello") | {"text": 1}]
    for value in wrong:
        with pytest.raises(WrongAnswer):
            checker.check_entry(value)


def test_threads_share_one_check() -> None:
    """msgspec 0.22 crashes when two threads first use the same class; this check is used by threads, too."""
    checker = AnswerCheck()
    answer = {"experiments": [make_experiment(str(number), search=make_search()) for number in range(50)]}
    troubles: list[BaseException] = []

    def work() -> None:
        try:
            checker.check(answer, WIRE_NAMES.ExperimentList)
        except BaseException as error:  # noqa: BLE001  # the test shows it
            troubles.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert troubles == []


def test_every_shape_can_be_read() -> None:
    checker = AnswerCheck()
    names = [name for name in vars(wire) if name.endswith("View")]
    for name in names:
        if name not in (
            "CopyView",
            "DocsTopicView",
            "ForwardView",
            "GroupComparisonView",
            "PlotView",
            "ScalingView",
            "ScalingRowView",
        ):  # no server sends them
            with pytest.raises(WrongAnswer, match="is absent"):
                checker.check({}, cast("Any", name))
