"""The section `train` as a whole: its keys and its defaults."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from riseml.base.states import State
from riseml.spec.config.loader import load_config
from riseml.spec.config.overrides import Overrides
from riseml.spec.config.resolved import resolve_config
from riseml.spec.config.types import (
    EnvVariable,
    MetricCondition,
    NotifySection,
    Relation,
    Retry,
    RetryOn,
    RetryScope,
    Train,
)
from tests.unit.spec.examples import EXAMPLES, HEAD, load_example


def test_defaults_are_noted() -> None:
    spec = load_config(EXAMPLES["the smallest"])
    assert spec.train == Train(run=("python t.py",), image="python:3.11")
    assert spec.notes == (
        "train.resources.cpus is not set: each job is sure to get 1 core",
        "train.resources.mem is not set: each job is sure to get 1024 MiB of memory",
    )
    assert load_config(EXAMPLES["framework without its section"]).notes[2:] == (
        "train.tensorflow.version is not set: it is 2.21.0",
    )
    assert load_config(EXAMPLES["image with install"]).notes == ()


def test_the_remaining_keys_are_read() -> None:
    train = load_example("all the rest")
    assert train.env == tuple(EnvVariable(*pair) for pair in [("A", "1"), ("B", "x y"), ("C", "yes"), ("D", "")])
    assert train.policy.retry == Retry(2, frozenset({RetryOn.HOST_LOST, RetryOn.OUT_OF_MEMORY}), RetryScope.ROLE)
    assert (train.policy.max_duration, train.policy.stop_grace, train.policy.priority) == (86400, 0, -5)
    assert train.finish_grace == 5400
    reached = (MetricCondition("accuracy", Relation.ABOVE, 0.95), MetricCondition("loss", Relation.AT_MOST, 0.001))
    assert train.policy.notify == NotifySection((State.FAILED, State.FINISHED), reached, ("team",))
    listed = load_example("env as a list").env
    assert listed == (EnvVariable("TOKEN", None), EnvVariable("MODE", "fast"), EnvVariable("EMPTY", ""))
    assert load_config(f"{HEAD}  run: b\n  retry: 2\n").train.policy.retry == Retry(2)
    assert load_example("image with install").install == ("apt-get -y update", "pip install -r requirements.txt")
    assert load_example("anchors").install == load_example("anchors").run == ("b",)


def test_defaults_never_exceed_the_limits_of_the_file() -> None:
    train = load_config(f"{HEAD}  run: b\n  limits: {{cpus: 0.5, mem: 256M}}\n").train
    assert (train.resources.cpus, train.resources.mem) == (0.5, 256)


@given(
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], include_characters="\n\t"), min_size=1, max_size=200)
)
def test_notes_come_back_as_they_are_written(note: str) -> None:
    text = f"project: x\ntrain: {{image: a, run: b, notes: {json.dumps(note, ensure_ascii=False)}}}\n"
    assert load_config(text).train.notes == note
    overridden = resolve_config(text, Overrides((), (("train.image", "other"),)))
    assert load_config(overridden).train.notes == note


def test_names_and_tags_are_normalised_and_each_tag_is_there_once() -> None:
    train = load_config("project: x\ntrain: {image: a, run: b, name: ' gro\u0308\u00dfe  1 ', tags: [a, b, a]}\n").train
    assert (train.name, train.tags) == ("gr\u00f6\u00dfe  1", ("a", "b"))
    assert load_config("project: x\ntrain: {image: a, run: b, tags: baseline}\n").train.tags == ("baseline",)
