"""A submission before it is stored: its texts, and how its jobs run."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml import wire
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.errors import Refused, UsageError
from riseml.server.api.submissions.submit import (
    Planned,
    check_choice,
    check_text,
    list_passed,
    make_new_experiments,
    read_overrides,
)
from riseml.spec.config.loader import load_config
from riseml.spec.config.overrides import Overrides
from tests.support.callers import ME as CALLER
from tests.unit.server.api.conftest import SUBMISSION
from tests.unit.server.memory_pool import make_host, make_hosts


@pytest.mark.parametrize(
    "value", ["a\0", ["a", "\0"], {"a\0": 1}, {"a": {"b": [("x", "\0")]}}], ids=["text", "list", "key", "deep"]
)
def test_a_nul_anywhere_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="NUL character"):
        check_text({"fields": value})


def test_other_values_are_taken() -> None:
    check_text({"a": ["b", 1, None, 0.5, True, {"c": ("d",)}]})


def test_the_variables_without_a_value_come_from_the_user() -> None:
    train = load_config("project: x\ntrain: {image: a, run: b, env: [TOKEN, MODE=fast, EMPTY=]}\n").train
    assert list_passed(train) == ("TOKEN",)


def test_options_of_the_command_line_are_read() -> None:
    assert read_overrides({**SUBMISSION, "parameters": [["lr", "1"]], "settings": [["train.run", "x"]]}) == Overrides(  # type: ignore[typeddict-item]  # as JSON has it
        (("lr", "1"),), (("train.run", "x"),)
    )


def test_an_executor_that_the_server_does_not_use_is_refused(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path, make_host())
    check_choice(hosts.executor_name, hosts)
    with pytest.raises(Refused, match="and the submission asks for other"):
        check_choice("other", hosts)


SAYS = "project: x\ntrain: {image: a, run: b, name: warm up, tags: [lr, lr, base], notes: '*why*'}\n"


@pytest.mark.parametrize(
    ("more", "annotation"),
    [
        ({}, Annotation("warm up", ("lr", "base"), "*why*")),
        ({"annotation": {"note": "this run"}}, Annotation("warm up", ("lr", "base"), "this run")),
        ({"annotation": {"name": "", "tags": [], "note": ""}}, NO_ANNOTATION),
        ({"annotation": {"name": " n ", "tags": ["t", "t"]}}, Annotation("n", ("t",), "*why*")),
        ({"notebook": {}}, NO_ANNOTATION),
    ],
)
def test_what_is_said_comes_with_the_submission_and_else_from_the_file(
    more: dict[str, object], annotation: Annotation
) -> None:
    submission: wire.Submission = {**SUBMISSION, "config": SAYS, **more}  # type: ignore[typeddict-item]  # as JSON has it
    assert make_new_experiments(submission, Planned(load_config(SAYS), ()), CALLER).annotation == annotation


@pytest.mark.parametrize("said", [{"name": "4.1"}, {"tags": ["a b"]}, {"note": "x" * 20_001}])
def test_what_cannot_be_said_is_refused_with_the_submission(said: wire.RunAnnotation) -> None:
    submission: wire.Submission = {**SUBMISSION, "config": SAYS, "annotation": said}  # type: ignore[typeddict-item]  # as JSON has it
    with pytest.raises(UsageError, match=r"looks like the ID|has the character|20,001 characters"):
        make_new_experiments(submission, Planned(load_config(SAYS), ()), CALLER)
