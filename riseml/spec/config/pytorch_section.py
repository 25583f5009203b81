"""The `pytorch` section: the containers of a process group, and the processes in each of them."""

from __future__ import annotations

import re

from riseml.spec.config.cluster import read_resources
from riseml.spec.config.types import PyTorch, Resources, TorchDistributed
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "pytorch")
_DISTRIBUTED: KeyPath = (*_PATH, "distributed")
_LAUNCHERS = re.compile(r"torchrun|torch\.distributed|accelerate|deepspeed|mpirun|multiprocessing|spawn")


def read_pytorch(file: SourceFile, image: str | None, base: Resources) -> PyTorch | None:
    """Return the `pytorch` section; None without one.

    Args:
        file: the file; problems go there.
        image: `train.image`, which replaces the image of PyTorch.
        base: `train.resources`, the default of every role.
    """
    if file.value_at(_PATH) is None:
        return None
    version = file.value_at((*_PATH, "version"))
    if image is None and version is not None and re.fullmatch(r"[0-9.]+", version):
        file.warn(
            (*_PATH, "version"),
            f"pytorch/pytorch has no tag {version} without its CUDA",
            f"write the whole tag, such as `{version}-cuda12.4-cudnn9-runtime`",
        )
    return PyTorch(version or PyTorch().version, _read_distributed(file, base))


def _read_distributed(file: SourceFile, base: Resources) -> TorchDistributed | None:
    if not file.value_at(_DISTRIBUTED):
        return None
    processes = file.value_at((*_DISTRIBUTED, "processes"))
    if processes is not None and processes > 1:
        _warn_of_single_processes(file, processes)
    worker = file.value_at((*_DISTRIBUTED, "worker"))
    count = file.value_at((*_DISTRIBUTED, "worker", "count")) if isinstance(worker, dict) else worker
    return TorchDistributed(
        workers=1 if count is None else int(count),
        processes=processes,
        master_resources=read_resources(file, (*_DISTRIBUTED, "master", "resources"), base),
        worker_resources=read_resources(file, (*_DISTRIBUTED, "worker", "resources"), base),
    )


def _warn_of_single_processes(file: SourceFile, processes: int) -> None:
    run = file.value_at(("train", "run"))
    text = "\n".join(str(line) for line in run) if isinstance(run, list) else str(run)
    if not _LAUNCHERS.search(text):
        path = (*_DISTRIBUTED, "processes")
        problem = f"`run` starts one process in each container, not {processes}"
        file.warn(path, problem, "write `torchrun train.py` instead of `python train.py`: it starts them")
