"""`horovod` in the sections of TensorFlow and PyTorch: the containers, and the processes in each of them."""

from __future__ import annotations

import re

from riseml.spec.config.process_group import runs_command
from riseml.spec.config.types import Horovod, Resources
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_LAUNCHERS = re.compile(r"\b(horovodrun|mpirun|mpiexec)\b")


def read_horovod(file: SourceFile, section: KeyPath, image: str | None, base: Resources) -> Horovod | None:
    """Return the `horovod` of a section; None when the section has none.

    Args:
        file: the file; problems go there.
        section: where the section of the framework is: `train.tensorflow`.
        image: `train.image`, which replaces the image of Horovod.
        base: `train.resources`, which each container has.
    """
    path = (*section, "horovod")
    written = file.value_at(path)
    if written is None:
        return None
    if file.value_at((*section, "distributed")):
        file.refuse_key(path, "`distributed` and `horovod` exclude each other", "remove one of them")
    inner: KeyPath = (*path, "workers") if isinstance(written.get("workers"), dict) else path
    if "workers" in written and "count" in written:
        file.refuse_key((*path, "count"), "`workers` already gives the count", "remove `workers` or `count`")
    if path != inner and "processes" in written and "processes" in written["workers"]:
        file.refuse_key((*path, "processes"), "`workers` already gives the processes", "remove one of the two")
    if "workers" not in written and "count" not in written:
        file.refuse_key((*path, "workers"), "is missing", "write `workers: 2`")
    _warn_of_launchers(file)
    version = (*section, "version")
    if image is None and file.value_at(version) is not None:
        hint = "write `image:` with one that has Horovod and your version, or remove it"
        file.warn(version, "the image of Horovod has versions of its own", hint)
    plain = file.value_at((*path, "workers"))
    workers = plain if isinstance(plain, int) else file.value_at((*inner, "count"))
    processes = file.value_at((*inner, "processes")) or file.value_at((*path, "processes"))
    return Horovod(workers=workers or 1, processes=processes or max(1, base.gpus))


def _warn_of_launchers(file: SourceFile) -> None:
    if runs_command(file, _LAUNCHERS):
        problem = "riseml starts the processes of Horovod itself; this would start others in each of them"
        file.warn(("train", "run"), problem, "write `python train.py` alone")
