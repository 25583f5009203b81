"""The `tensorflow` section: roles, their resources, and which key the first worker has in TF_CONFIG."""

from __future__ import annotations

import re

from riseml.spec.config.types import ChiefKey, Distributed, Horovod, Labels, Resources, TensorFlow
from riseml.spec.yaml.problems import Path
from riseml.spec.yaml.scalars import BadText, memory
from riseml.spec.yaml.values import Settled

PATH: Path = ("train", "tensorflow")
_DISTRIBUTED: Path = (*PATH, "distributed")
_HOROVOD: Path = (*PATH, "horovod")
_OFFICIAL = re.compile(r"(?:.*/)?tensorflow/tensorflow:([0-9][A-Za-z0-9_.-]*)")


def read_resources(settled: Settled, path: Path, default: Resources) -> Resources:
    """The resources at a path; what is not given there comes from `default`."""
    cpus = settled.value_at((*path, "cpus"))
    gpus = settled.value_at((*path, "gpus"))
    mem = read_memory(settled, (*path, "mem"))
    return Resources(
        default.cpus if cpus is None else float(cpus),
        default.mem if mem is None else mem,
        default.gpus if gpus is None else gpus,
        _labels(settled, (*path, "labels"), default.labels),
    )


def _labels(settled: Settled, path: Path, default: Labels) -> Labels:
    """The labels at a path: all of them or those of `default`; a role that has its own does not add to them."""
    written = settled.value_at(path)
    if not isinstance(written, dict):
        return default
    values = ((name, settled.value_at((*path, name))) for name in sorted(written))
    return tuple((name, str(value)) for name, value in values if value is not None)


def read_memory(settled: Settled, path: Path) -> int | None:
    """An amount of memory in MiB, None without one."""
    text = settled.value_at(path)
    if text is None:
        return None
    try:
        return memory(text)
    except BadText as bad:
        settled.refuse(path, bad.problem, bad.hint)
        return None


def read_tensorflow(settled: Settled, image: str | None, base: Resources) -> TensorFlow | None:
    """The section as a whole; None when there is none. `image` is the one that replaces TensorFlow's own."""
    if settled.value_at(PATH) is None:
        return None
    official = _OFFICIAL.fullmatch(image or "")
    version = settled.value_at((*PATH, "version")) or (official[1] if official else TensorFlow().version)
    if settled.value_at(_DISTRIBUTED) and settled.value_at(_HOROVOD):
        settled.refuse_key(
            _HOROVOD,
            "an experiment is distributed by TensorFlow or by Horovod, not by both",
            "leave out `distributed` or `horovod`",
        )
    return TensorFlow(
        version=version,
        tensorboard=bool(settled.value_at((*PATH, "tensorboard"))),
        distributed=_distributed(settled, version, base),
        horovod=_horovod(settled, base),
    )


def _distributed(settled: Settled, version: str, base: Resources) -> Distributed | None:
    if not settled.value_at(_DISTRIBUTED):
        return None
    chief = _chief(settled, version)
    workers = _role(settled, "worker", base)
    master_path = (*_DISTRIBUTED, "master")
    if chief is ChiefKey.WORKER and settled.value_at(master_path) is not None:
        settled.warn(master_path, "`chief: worker` has no master", "these resources go to worker.1")
    # with `chief: worker` the first worker is one of its kind; a master is a role of its own
    master = read_resources(settled, (*master_path, "resources"), workers if chief is ChiefKey.WORKER else base)
    evaluator = settled.value_at((*_DISTRIBUTED, "evaluator"))
    return Distributed(
        workers=_count(settled, "worker", 1),
        ps=_count(settled, "ps", 0),
        chief=chief,
        master_resources=master,
        worker_resources=workers,
        ps_resources=_role(settled, "ps", base),
        evaluator_resources=_role(settled, "evaluator", base) if evaluator else None,
    )


def _role(settled: Settled, role: str, base: Resources) -> Resources:
    return read_resources(settled, (*_DISTRIBUTED, role, "resources"), base)


def _count(settled: Settled, role: str, default: int) -> int:
    value = settled.value_at((*_DISTRIBUTED, role))
    if isinstance(value, dict):
        value = settled.value_at((*_DISTRIBUTED, role, "count")) or (0 if value.get("count") == 0 else 1)
    return default if value is None else int(value)


def _chief(settled: Settled, version: str) -> ChiefKey:
    path = (*_DISTRIBUTED, "chief")
    old = re.match(r"[01](?![0-9])", version) is not None
    written = settled.value_at(path)
    if written is None:
        return ChiefKey.MASTER if old else ChiefKey.CHIEF
    if written == "master" and not old:
        settled.warn(
            path, f"TensorFlow {version} knows no `master` in TF_CONFIG", "write `chief: chief`, or leave it out"
        )
    elif written == "master" and settled.value_at((*_DISTRIBUTED, "evaluator")):
        settled.warn(path, "TensorFlow refuses an evaluator beside a `master`", "`chief` is used; leave it out")
    return ChiefKey(written)


def _horovod(settled: Settled, base: Resources) -> Horovod | None:
    section = settled.value_at(_HOROVOD)
    if section is None:
        return None
    inner: Path = (*_HOROVOD, "workers") if isinstance(section.get("workers"), dict) else _HOROVOD
    if "workers" in section and "count" in section:
        settled.refuse_key((*_HOROVOD, "count"), "`workers` says it already", "leave out `workers` or `count`")
    if "workers" not in section and "count" not in section:
        settled.refuse_key((*_HOROVOD, "workers"), "is missing", "write `workers: 2`")
    plain = settled.value_at((*_HOROVOD, "workers"))
    workers = plain if isinstance(plain, int) else settled.value_at((*inner, "count"))
    processes = settled.value_at((*inner, "processes"))
    return Horovod(workers=workers or 1, processes=processes or max(1, base.gpus))
