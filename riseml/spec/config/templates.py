"""The first riseml.yml of a project, as `riseml init` writes it: short, commented, and right as it stands."""

from __future__ import annotations

import re

from riseml.errors import UsageError
from riseml.spec.config.types import DEFAULT_TENSORFLOW

_PLAIN = """\
# What to train and what it needs. All keys: docs/riseml-yml.md
project: {project}

train:
  image: python:3.11          # any Docker image
  # install:                  # steps that are built into the image once
  #   - pip install -r requirements.txt

  resources:                  # what the job is sure to get; it may use more
    cpus: 1
    mem: 2GiB
    gpus: 0

  parameters:                 # change one for a run: riseml train -p lr=0.1
    lr: 0.01                  # a list makes one experiment for each value: [0.1, 0.01]

  run: >-
    python train.py --lr {{{{lr}}}} --output "$OUTPUT_DIR"
"""

_TENSORFLOW = """\
# What to train and what it needs. All keys: docs/riseml-yml.md
project: {project}

train:
  framework: tensorflow
  tensorflow:
    version: "{version}"         # the tag of the image tensorflow/tensorflow; with GPUs: "{version}-gpu"
    # tensorboard: true         # shows what is written to OUTPUT_DIR
    # distributed:              # more than one job; each finds its role in TF_CONFIG
    #   worker: 3               # master, worker.1 and worker.2
    #   ps: 1

  # install:                    # steps that are built into the image once
  #   - pip install -r requirements.txt

  resources:                    # what each job is sure to get; it may use more
    cpus: 1
    mem: 2GiB
    gpus: 0

  parameters:                   # change one for a run: riseml train -p lr=0.1
    lr: 0.01                    # a list makes one experiment for each value: [0.1, 0.01]

  run: >-
    python train.py --lr {{{{lr}}}} --output "$OUTPUT_DIR"
"""

_PYTORCH = """\
# What to train and what it needs. All keys: docs/riseml-yml.md
project: {project}

train:
  framework: pytorch
  image: pytorch/pytorch:latest # name a version, so that a run can be repeated
  # install:                    # steps that are built into the image once
  #   - pip install -r requirements.txt

  resources:                    # what each job is sure to get; it may use more
    cpus: 1
    mem: 2GiB
    gpus: 0
  shm_size: 1GiB                # data loaders with several processes need it

  parameters:                   # change one for a run: riseml train -p lr=0.1
    lr: 0.01                    # a list makes one experiment for each value: [0.1, 0.01]

  run: >-
    python train.py --lr {{{{lr}}}} --output "$OUTPUT_DIR"
"""

_STARTERS: dict[str | None, str] = {None: _PLAIN, "tensorflow": _TENSORFLOW, "pytorch": _PYTORCH}
_NO_TEXT = frozenset({"null", "Null", "NULL"})


def make_starter_config(project: str, framework: str | None) -> str:
    """A commented riseml.yml that validates. `project` may be any folder name: what no name may contain becomes `-`.

    Raises:
        UsageError: there is no such framework.
    """
    if framework not in _STARTERS:
        known = ", ".join(name for name in _STARTERS if name)
        raise UsageError(f"there is no first riseml.yml for the framework {framework!r}", f"use one of: {known}")
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", project).strip("-")[:100] or "my-project"
    written = f'"{name}"' if name in _NO_TEXT else name
    return _STARTERS[framework].format(project=written, version=DEFAULT_TENSORFLOW)
