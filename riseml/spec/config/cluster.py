"""The `tensorflow` section: roles, their resources, and the key of the first worker in TF_CONFIG."""

from __future__ import annotations

import re

from riseml.spec.config.horovod_section import read_horovod
from riseml.spec.config.role_resources import read_resources
from riseml.spec.config.types import ChiefKey, Distributed, Resources, TensorBoard, TensorFlow
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "tensorflow")
_TENSORBOARD: KeyPath = (*_PATH, "tensorboard")
_DISTRIBUTED: KeyPath = (*_PATH, "distributed")
_WHOLE_BUCKET = re.compile(r"s3://[^/]*/*")
_OFFICIAL = re.compile(r"(?:.*/)?tensorflow/tensorflow:([0-9][A-Za-z0-9_.-]*)")


def read_tensorflow(file: SourceFile, image: str | None, base: Resources) -> TensorFlow | None:
    """Return the `tensorflow` section; None when the file has none.

    Args:
        file: the file; problems go there.
        image: `train.image`, which replaces the image of TensorFlow.
        base: `train.resources`, the default of every role.
    """
    if file.value_at(_PATH) is None:
        return None
    official = _OFFICIAL.fullmatch(image or "")
    version = file.value_at((*_PATH, "version")) or (official[1] if official else TensorFlow().version)
    return TensorFlow(
        version=version,
        tensorboard=_read_tensorboard(file),
        distributed=_read_distributed(file, version, base),
        horovod=read_horovod(file, _PATH, image, base),
    )


def _read_tensorboard(file: SourceFile) -> TensorBoard | None:
    written = file.value_at(_TENSORBOARD)
    if not isinstance(written, dict):
        return TensorBoard() if written else None
    logdir = file.value_at((*_TENSORBOARD, "logdir")) or ""
    if ".." in logdir.split("/"):
        file.refuse_key((*_TENSORBOARD, "logdir"), "leads out of OUTPUT_DIR", "write a folder below it, such as `logs`")
    if _WHOLE_BUCKET.fullmatch(logdir):
        hint = f"write a folder of it, such as `{logdir.rstrip('/')}/logs`"
        file.refuse_key((*_TENSORBOARD, "logdir"), "is a whole bucket, which TensorBoard does not read", hint)
    return TensorBoard(logdir, file.value_at((*_TENSORBOARD, "version")))


def _read_distributed(file: SourceFile, version: str, base: Resources) -> Distributed | None:
    if not file.value_at(_DISTRIBUTED):
        return None
    chief = _choose_chief(file, version)
    workers = _read_role(file, "worker", base)
    master_path = (*_DISTRIBUTED, "master")
    if chief is ChiefKey.WORKER and file.value_at(master_path) is not None:
        file.warn(master_path, "`chief: worker` has no master", "these resources go to worker.1")
    # with `chief: worker` the first worker has the resources of the other workers
    master = read_resources(file, (*master_path, "resources"), workers if chief is ChiefKey.WORKER else base)
    evaluator = file.value_at((*_DISTRIBUTED, "evaluator"))
    return Distributed(
        workers=_read_count(file, "worker", 1),
        ps=_read_count(file, "ps", 0),
        chief=chief,
        master_resources=master,
        worker_resources=workers,
        ps_resources=_read_role(file, "ps", base),
        evaluator_resources=_read_role(file, "evaluator", base) if evaluator else None,
    )


def _read_role(file: SourceFile, role: str, base: Resources) -> Resources:
    return read_resources(file, (*_DISTRIBUTED, role, "resources"), base)


def _read_count(file: SourceFile, role: str, default: int) -> int:
    value = file.value_at((*_DISTRIBUTED, role))
    if isinstance(value, dict):
        value = file.value_at((*_DISTRIBUTED, role, "count")) or (0 if value.get("count") == 0 else 1)
    return default if value is None else int(value)


def _choose_chief(file: SourceFile, version: str) -> ChiefKey:
    path = (*_DISTRIBUTED, "chief")
    old = re.match(r"[01](?![0-9])", version) is not None
    written = file.value_at(path)
    if written is None:
        return ChiefKey.MASTER if old else ChiefKey.CHIEF
    if written == "master" and not old:
        file.warn(
            path, f"TensorFlow {version} does not accept `master` in TF_CONFIG", "write `chief: chief`, or remove it"
        )
    elif written == "master" and file.value_at((*_DISTRIBUTED, "evaluator")):
        file.warn(path, "TensorFlow refuses an evaluator beside a `master`", "riseml uses `chief` instead; remove it")
    return ChiefKey(written)
