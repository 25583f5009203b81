"""The `pytorch` section: the containers of a process group, and the processes in each of them."""

from __future__ import annotations

import re

from riseml.spec.config.horovod_section import read_horovod
from riseml.spec.config.process_group import read_process_group, runs_command
from riseml.spec.config.types import ProcessGroup, PyTorch, Resources
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "pytorch")
_DISTRIBUTED: KeyPath = (*_PATH, "distributed")
_LAUNCHERS = re.compile(r"torchrun|torch\.distributed|accelerate|deepspeed|mpirun|multiprocessing|spawn")

_PYTHON = re.compile(r"\bpython[0-9.]*\b")


def read_pytorch(file: SourceFile, image: str | None, base: Resources) -> PyTorch | None:
    """Return the `pytorch` section; None when the file has none.

    Args:
        file: the file; problems go there.
        image: `train.image`, which replaces the image of PyTorch.
        base: `train.resources`, the default of every role.
    """
    if file.value_at(_PATH) is None:
        if file.value_at(("train", "framework")) == "pytorch":
            _warn_of_single_process(file, base.gpus)
        return None
    version = file.value_at((*_PATH, "version"))
    horovod = read_horovod(file, _PATH, image, base)
    if image is None and horovod is None and version is not None and re.fullmatch(r"[0-9.]+", version):
        file.warn(
            (*_PATH, "version"),
            f"pytorch/pytorch has no tag {version} without its CUDA",
            f"write the whole tag, such as `{version}-cuda12.4-cudnn9-runtime`",
        )
    distributed = _read_distributed(file, base)
    if horovod is None and distributed is None:
        _warn_of_single_process(file, base.gpus)
    return PyTorch(version or PyTorch().version, distributed, horovod)


def _read_distributed(file: SourceFile, base: Resources) -> ProcessGroup | None:
    group = read_process_group(file, _DISTRIBUTED, base)
    if group is not None and group.processes is None:
        _warn_of_single_process(file, max(group.master_resources.gpus, group.worker_resources.gpus))
    if group is not None and (group.processes or 1) > 1 and not runs_command(file, _LAUNCHERS):
        problem = f"`run` starts one process in each container, not {group.processes}"
        hint = "write `torchrun train.py` instead of `python train.py`: it starts them"
        file.warn((*_DISTRIBUTED, "processes"), problem, hint)
    return group


def _warn_of_single_process(file: SourceFile, gpus: int) -> None:
    """Warn when Python alone gets several GPUs: the script may expect one process for each of them."""
    if gpus > 1 and runs_command(file, _PYTHON) and not runs_command(file, _LAUNCHERS):
        problem = f"`python` is one process for {gpus} GPUs, without LOCAL_RANK"
        hint = "write `torchrun train.py` for one process for each GPU, unless the script starts them or uses all GPUs"
        file.warn(("train", "run"), problem, hint)
