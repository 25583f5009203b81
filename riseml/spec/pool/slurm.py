"""The section `slurm` of a pool.yml, and which other keys do not go with it."""

from __future__ import annotations

from typing import Any

from riseml.spec.pool.types import EngineKind, SlurmSpec
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_SECTION: KeyPath = ("slurm",)
_OF_ENGINES = ("hosts", "network", "encrypted", "registry")


def read_slurm(file: SourceFile) -> tuple[EngineKind, SlurmSpec | None]:
    """Return what runs the jobs, and the cluster if it is one. Problems go to `file`."""
    written = file.value_at(("engine",))
    engine = EngineKind.DOCKER if written is None else EngineKind(written)
    value = file.value if isinstance(file.value, dict) else {}
    if engine is EngineKind.DOCKER:
        if "slurm" in value and ("engine",) not in file.bad:
            file.refuse_key(_SECTION, "is only for a Slurm cluster", "add `engine: slurm`, or remove it")
        return engine, None
    for key in _OF_ENGINES:
        if key in value:
            file.refuse_key((key,), "is only for Docker hosts, and `engine` is slurm", "remove it, or `engine`")
    for key in ("output", "data"):
        if isinstance(file.value_at(("storage", key)), dict):
            file.refuse(("storage", key), "is a Docker volume, which a Slurm cluster does not have", "write a path")
    if "slurm" not in value:
        file.refuse_key(_SECTION, "is missing", "write `slurm: {folder: /shared/riseml}`")
        return engine, None
    return engine, _build_slurm(file)


def _build_slurm(file: SourceFile) -> SlurmSpec:
    words = {key: _read_text(file, key) for key in ("partition", "account", "qos", "constraint", "reservation")}
    return SlurmSpec(
        folder=_read_text(file, "folder").rstrip("/"),
        **words,
        time_limit=file.duration_at((*_SECTION, "time_limit")),
        setup=_read_texts(file, "setup"),
        prefix=_read_texts(file, "prefix"),
        python=_read_text(file, "python") or SlurmSpec("").python,
        gpu_packages=bool(file.value_at((*_SECTION, "gpu_packages"))),
    )


def _read_text(file: SourceFile, key: str) -> str:
    value: Any = file.value_at((*_SECTION, key))
    return "" if value is None else str(value)


def _read_texts(file: SourceFile, key: str) -> tuple[str, ...]:
    value = file.value_at((*_SECTION, key))
    count = len(value) if isinstance(value, list) else 0
    found = (file.value_at((*_SECTION, key, index)) for index in range(count))
    return tuple(str(text) for text in found if text is not None)
