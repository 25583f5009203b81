"""The section `horovod`: its forms, and what does not go with it."""

from __future__ import annotations

from riseml.spec.config.types import (
    Horovod,
)
from tests.unit.spec.examples import load_tensorflow


def test_every_form_of_horovod_is_read() -> None:
    assert load_tensorflow("{horovod: {workers: 2}}").horovod == Horovod(2, 1)
    assert load_tensorflow("{horovod: {workers: {count: 2, processes: 4}}}").horovod == Horovod(2, 4)
    assert load_tensorflow("{horovod: {workers: {count: 2}, processes: 4}}").horovod == Horovod(2, 4)
    assert load_tensorflow("{horovod: {workers: 2, processes: 4}}").horovod == Horovod(2, 4)
    assert load_tensorflow("{horovod: {count: 3, processes: 2}}").horovod == Horovod(3, 2)
