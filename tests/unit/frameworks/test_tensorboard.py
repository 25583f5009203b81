"""The key `tensorboard` of riseml.yml: what its job shows, and with which version."""

from __future__ import annotations

import json
import shlex

import pytest

from riseml.base.errors import UsageError
from riseml.frameworks.tensorboard import is_outside
from riseml.planning.image import Manifest
from riseml.planning.plan import make_plan
from riseml.spec.config.loader import load_config

CONFIG = """
project: toaster
train:
  framework: tensorflow
  install: pip install numpy
  run: python train.py
  tensorflow: {{tensorboard: {board}{more}}}
"""
HOROVOD = ", horovod: {workers: 2}"


@pytest.mark.parametrize("more", ["", HOROVOD], ids=["tensorflow", "horovod"])
@pytest.mark.parametrize(
    ("board", "shown", "option"),
    [
        ("true", '"$OUTPUT_DIR"', None),
        ("{logdir: my logs}", "\"$OUTPUT_DIR\"/'my logs'", "my logs"),
        ("{logdir: /data/logs}", "/data/logs", "/data/logs"),
        ("{logdir: 'gs://b/$x'}", "'gs://b/$x'", "gs://b/$x"),
        ("{version: 2.20}", '"$OUTPUT_DIR"', None),
    ],
)
def test_it_shows_the_output_or_what_logdir_names(more: str, board: str, shown: str, option: str | None) -> None:
    plan = make_plan(load_config(CONFIG.format(board=board, more=more)), (), Manifest())
    (line,) = next(job for job in plan.jobs if job.name == "tensorboard").run
    assert line.startswith(f"exec tensorboard --logdir {shown} --host")
    assert dict(plan.options).get("logdir") == option
    assert option is None or is_outside(option) == (option != "my logs")
    pinned = ("python3 -m pip install tensorboard==2.20",) if "version" in board else ()
    assert plan.image.install[-1 - len(pinned) :] == ("pip install numpy", *pinned)


@pytest.mark.parametrize("more", ["", HOROVOD], ids=["tensorflow", "horovod"])
def test_logs_in_s3_are_read_with_boto3(more: str) -> None:
    plan = make_plan(load_config(CONFIG.format(board="{logdir: s3://runs/logs}", more=more)), (), Manifest())
    (line,) = next(job for job in plan.jobs if job.name == "tensorboard").run
    words = shlex.split(line)
    assert words[:3] == ["exec", "python3", "-c"]
    assert json.loads(words[4])["urls"] == [], "the training may write its first logs later"
    assert words[5:8] == ["", "--logdir", "s3://runs/logs"]
    assert plan.image.install[-1].endswith("import boto3' 2>/dev/null || python3 -m pip install boto3")


def test_a_whole_bucket_is_not_a_logdir() -> None:
    with pytest.raises(UsageError, match="is a whole bucket"):
        load_config(CONFIG.format(board="{logdir: s3://runs/}", more=""))
