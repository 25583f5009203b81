"""The section `save`: where the output goes, and how often."""

from __future__ import annotations

from riseml.spec.config.types import DEFAULT_EVERY, SaveSection
from riseml.spec.scalars.data_url import OBJECT_STORES, parse_data_url
from riseml.spec.scalars.globs import parse_glob, refuse_alternatives
from riseml.spec.scalars.texts import BadText
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "save")
_LEAST = 1.0  # seconds between two copies


def read_save(file: SourceFile) -> SaveSection | None:
    """Return the section; None when the file has none. Problems go to `file`."""
    to = file.value_at((*_PATH, "to"))
    only = _read_patterns(file)
    every = file.duration_at((*_PATH, "every"))
    if every is not None and every < _LEAST:
        file.refuse((*_PATH, "every"), "must be one second or more", "write for example `every: 5m`")
    if not isinstance(to, str):
        return None
    try:
        url = parse_data_url(to)
    except BadText as bad:
        file.refuse((*_PATH, "to"), bad.problem, bad.hint)
        return None
    if url.scheme not in OBJECT_STORES:
        problem = f"outputs are saved in object stores, and {url.scheme.value}:// is not one"
        file.refuse((*_PATH, "to"), problem, "write s3://bucket/folder, gs://bucket/folder or az://container/folder")
        return None
    restore = file.value_at((*_PATH, "restore")) is True
    return SaveSection(str(url), DEFAULT_EVERY if every is None else every, only, restore)


def _read_patterns(file: SourceFile) -> tuple[str, ...]:
    value = file.value_at((*_PATH, "only"))
    patterns: list[str] = []
    for index in range(len(value) if isinstance(value, list) else 0):
        path = (*_PATH, "only", index)
        text = file.value_at(path)
        if not isinstance(text, str):
            continue
        try:
            refuse_alternatives(text)
            parse_glob(text)
        except BadText as bad:
            file.refuse(path, bad.problem, bad.hint)
        else:
            patterns.append(text)
    return tuple(patterns)
