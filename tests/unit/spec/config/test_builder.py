"""The section `train` as a whole: its keys and its defaults."""

from __future__ import annotations

from riseml.base.states import State
from riseml.spec.config.loader import load_config
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
