"""The section `data`: what is fetched before the jobs start."""

from __future__ import annotations

from riseml.spec.config.types import DataSource
from riseml.spec.scalars.data_url import parse_data_url
from riseml.spec.scalars.texts import BadText
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "data")


def read_data(file: SourceFile) -> tuple[DataSource, ...]:
    """Return the entries in the order of the file; problems go to `file`."""
    sources: dict[str, DataSource] = {}
    value = file.value_at(_PATH)
    for index in range(len(value) if isinstance(value, list) else 0):
        source = file.value_at((*_PATH, index, "from"))
        folder = file.value_at((*_PATH, index, "to"))
        if not isinstance(source, str) or not isinstance(folder, str):
            continue
        try:
            url = parse_data_url(source)
        except BadText as bad:
            file.refuse((*_PATH, index, "from"), bad.problem, bad.hint)
            continue
        if folder in sources:
            problem = f"{sources[folder].url} has the same folder"
            file.refuse((*_PATH, index, "to"), problem, "give each entry a folder of its own")
            continue
        sources[folder] = DataSource(str(url), folder)
    return tuple(sources.values())
