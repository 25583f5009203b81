"""The resources of a role, and those of `train`."""

from __future__ import annotations

from riseml.spec.config.loader import load_config


def test_labels_of_a_role_replace_those_of_train() -> None:
    found = load_config(
        """\
project: x
train:
  framework: tensorflow
  resources: {gpus: 1, labels: {rack: 7, gpu: a100}}
  tensorflow:
    distributed:
      worker: 2
      ps: {count: 1, resources: {gpus: 0, labels: {}}}
      evaluator: {resources: {labels: {gpu: t4}}}
  run: t
"""
    ).train.tensorflow
    assert found is not None
    assert found.distributed is not None
    assert found.distributed.worker_resources.labels == (("gpu", "a100"), ("rack", "7"))
    assert found.distributed.ps_resources.labels == ()
    assert found.distributed.evaluator_resources is not None
    assert found.distributed.evaluator_resources.labels == (("gpu", "t4"),)
