"""The sections of frameworks: versions, and the jobs that they make."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import load_config
from riseml.spec.config.types import (
    ChiefKey,
    Distributed,
    Resources,
    TensorFlow,
)
from tests.unit.spec.examples import load_example, load_tensorflow


def _cluster(text: str) -> Distributed:
    found = load_tensorflow(f"{{distributed: {text}}}").distributed
    assert found is not None
    return found


def test_a_version_stays_as_written() -> None:
    assert load_tensorflow("{version: 1.10}") == TensorFlow("1.10")
    assert load_tensorflow("{version: 2}").version == "2"


@pytest.mark.parametrize(
    ("written", "is_on"), [("'true'", True), ('"true"', True), ("true", True), ("'false'", False), ("false", False)]
)
def test_tensorboard_takes_the_text_that_riseml_1_wrote(written: str, *, is_on: bool) -> None:
    assert (load_tensorflow(f"{{tensorboard: {written}}}").tensorboard is not None) is is_on


def test_resources_of_roles_come_from_train_key_by_key() -> None:
    found = load_example("all roles").tensorflow
    assert found is not None
    assert found.tensorboard
    assert found.distributed == Distributed(
        workers=3,
        ps=2,
        chief=ChiefKey.CHIEF,
        master_resources=Resources(2.0, 8192, 1),
        worker_resources=Resources(2.0, 4096, 2),
        ps_resources=Resources(2.0, 16384, 0),
        evaluator_resources=Resources(1.0, 4096, 1),
    )


@pytest.mark.parametrize(
    ("section", "chief"),
    [
        ("{distributed: {worker: 2}}", ChiefKey.CHIEF),
        ("{version: 2.21.0-gpu, distributed: {worker: 2}}", ChiefKey.CHIEF),
        ("{version: latest, distributed: {worker: 2}}", ChiefKey.CHIEF),
        ("{version: 1.15, distributed: {worker: 2}}", ChiefKey.MASTER),
        ("{version: 0.12.1, distributed: {worker: 2}}", ChiefKey.MASTER),
        ("{version: 1.15, distributed: {worker: 2, chief: chief}}", ChiefKey.CHIEF),
        ("{distributed: {worker: 2, chief: worker}}", ChiefKey.WORKER),
    ],
)
def test_the_key_of_the_first_worker_follows_the_version(section: str, chief: ChiefKey) -> None:
    found = load_tensorflow(section).distributed
    assert found is not None
    assert found.chief is chief


def test_an_official_image_gives_the_version() -> None:
    text = "project: x\ntrain: {framework: tensorflow, image: 'tensorflow/tensorflow:1.5.0', run: a, tensorflow: "
    found = load_config(text + "{distributed: {worker: 2}}}\n").train.tensorflow
    assert found is not None
    assert (found.version, found.distributed and found.distributed.chief) == ("1.5.0", ChiefKey.MASTER)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("{ps: 2}", (1, 2)),
        ("{worker: 3}", (3, 0)),
        ("{worker: {count: 3}, ps: {resources: {gpus: 0}}}", (3, 1)),
        ("{worker: 2, ps: {count: 0}}", (2, 0)),
    ],
)
def test_counts_of_workers_and_ps(text: str, counts: tuple[int, int]) -> None:
    found = _cluster(text)
    assert (found.workers, found.ps) == counts


def test_without_a_master_the_first_worker_is_like_the_others() -> None:
    found = _cluster("{worker: {count: 2, resources: {gpus: 1}}, chief: worker}")
    assert found.master_resources == found.worker_resources == Resources(gpus=1)
    assert _cluster("{worker: 2, evaluator: true}").evaluator_resources == Resources()
    assert _cluster("{worker: 2, evaluator: false}").evaluator_resources is None
