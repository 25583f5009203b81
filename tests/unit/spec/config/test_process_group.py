"""The process groups of PyTorch and JAX: their containers, and the processes in each."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import load_config
from riseml.spec.config.types import ProcessGroup, Resources

BASE = Resources(gpus=1)


@pytest.mark.parametrize("framework", ["pytorch", "jax"])
@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("{worker: 3}", ProcessGroup(3, None, BASE, BASE)),
        ("{worker: {count: 2}, processes: 4}", ProcessGroup(2, 4, BASE, BASE)),
        ("{worker: {resources: {gpus: 2}}}", ProcessGroup(1, None, BASE, Resources(gpus=2))),
        ("{worker: 2, master: {resources: {gpus: 0}}}", ProcessGroup(2, None, Resources(), BASE)),
        ("false", None),
    ],
)
def test_every_form_of_a_group_is_read(framework: str, text: str, group: ProcessGroup | None) -> None:
    train = load_config(
        f"project: x\ntrain:\n  framework: {framework}\n  run: torchrun a\n  resources: {{gpus: 1}}\n"
        f"  {framework}: {{distributed: {text}}}\n"
    ).train
    section = train.pytorch or train.jax
    assert section is not None
    assert section.distributed == group
