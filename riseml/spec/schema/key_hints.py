"""What an unknown key probably means: a typing mistake, a key of another section, or a word of another tool.

A hint names a key only where one key is meant: a wrong hint costs more than none. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field
from types import MappingProxyType
from typing import Any

from riseml.base.records import dataclass
from riseml.spec.schema.contract import ANY_NAME
from riseml.spec.schema.foreign_job_words import explain_foreign_key, find_place
from riseml.spec.schema.near_words import find_near_word
from riseml.spec.yaml.problems import KeyPath, format_key_path

_MOST_PLACES = 3  # sections that a hint names
_SYNONYMS = MappingProxyType(
    {
        "memory": "mem",
        "ram": "mem",
        "cpu_count": "cpus",
        "cores": "cpus",
        "devices": "gpus",
        "name": "project",
        "nodes": "hosts",
        "machines": "hosts",
        "servers": "hosts",
        "engine": "url",
        "uri": "url",
        "endpoint": "url",
        "ip": "address",
        "tags": "labels",
        "ssh_key": "identity",
        "identity_file": "identity",
        "private_key": "key",
        "cacert": "ca",
        "certificate": "cert",
        "driver_opts": "options",
        "opts": "options",
        "results": "output",
    }
)
"""Words for keys of pool.yml and of the top of riseml.yml."""


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that its section does not have."""

    key: str
    path: KeyPath  # of the section
    keys: Sequence[str]  # that the section has
    places: Mapping[str, Sequence[KeyPath]]  # the sections of each key of the schema, the topmost first
    train: Mapping[str, Any] = field(default_factory=dict)  # the section `train` of the file, as far as it is readable
    is_config: bool = True  # the file is a riseml.yml


def explain_unknown_key(unknown: UnknownKey) -> str:
    """Return the hint for a key: what it probably means, or the keys that the section has."""
    foreign = find_place(unknown.key) if unknown.is_config else None
    if foreign is not None and foreign[-1] in unknown.keys:
        return f'did you mean "{foreign[-1]}"?'
    near = suggest_key(unknown.key, unknown.keys)
    if unknown.key in unknown.places and near != _SYNONYMS.get(unknown.key, ""):
        sections = _choose_sections(unknown)
        belongs = f"it belongs {describe_sections(sections)}" if 0 < len(sections) <= _MOST_PLACES else None
        if near is not None:
            return f'did you mean "{near}"?' if belongs is None else f'did you mean "{near}"? Otherwise {belongs}'
        if belongs is not None:
            return belongs
    if foreign is not None:
        return f'did you mean "{foreign[-1]}" {describe_sections([foreign[:-1]])}?'
    if unknown.is_config and (sentence := explain_foreign_key(unknown.key)):
        return sentence
    if near is not None:
        return f'did you mean "{near}"?'
    return _suggest_elsewhere(unknown) or f"known here: {', '.join(unknown.keys)}"


def suggest_key(key: str, keys: Iterable[str]) -> str | None:
    """Return the key of a section that an unknown key probably means; None when no key is near, or several.

    Example:
        >>> suggest_key("memory", ["cpus", "mem"]), suggest_key("gpuss", ["cpus", "gpus"])
        ('mem', 'gpus')
    """
    choices = list(keys)
    synonym = _SYNONYMS.get(key.lower())
    return synonym if synonym in choices else find_near_word(key, choices)


def describe_sections(sections: Sequence[KeyPath]) -> str:
    """Return sections in words; an index stands for every item of its list."""
    names = [format_key_path(section).replace("[0]", "[]") if section else "" for section in sections]
    if names == [""]:
        return "at the top of the file"
    *first, last = [name or "the top of the file" for name in names]
    return f"in {', '.join(first)} or {last}" if first else f"in {last}"


def _suggest_elsewhere(unknown: UnknownKey) -> str | None:
    """Return the hint for a key that is nearly one of another section."""
    far = find_near_word(unknown.key, unknown.places) if len(unknown.key) > 2 else None
    if far is None:
        return None
    sections = _choose_sections(UnknownKey(far, unknown.path, (), unknown.places, unknown.train, unknown.is_config))
    return f'did you mean "{far}" {describe_sections(sections)}?' if 0 < len(sections) <= _MOST_PLACES else None


def _choose_sections(unknown: UnknownKey) -> list[KeyPath]:
    """Return the sections that have a key, without those that the file rules out, and without those of single jobs.

    A section of a single job, such as `resources` of a role, changes what the section of the same name in train says.
    """
    sections = [_fill_names(section, unknown.path) for section in unknown.places[unknown.key]]
    frameworks = {str(section[1]) for section in unknown.places.get("distributed", ())}
    sections = [
        section for section in sections if section != unknown.path and _is_possible(section, unknown.train, frameworks)
    ]
    below = [section for section in sections if section[: len(unknown.path)] == unknown.path and unknown.path[1:]]
    chosen: list[KeyPath] = []
    for section in below or sections:
        is_override = any(section[-1:] == other[-1:] for other in chosen) or (
            ("train",) in chosen and section[1:2] == ("roles",)
        )
        if not is_override:
            chosen.append(section)
    return chosen


def _fill_names(section: KeyPath, path: KeyPath) -> KeyPath:
    """Return a section with the names and indices of a path as far as both are the same place."""
    filled: list[str | int] = []
    for at, part in enumerate(section):
        same = tuple(filled) == path[:at] and at < len(path)
        filled.append(path[at] if same and (part == ANY_NAME or isinstance(part, int)) else part)
    return tuple(filled)


def _is_possible(section: KeyPath, train: Mapping[str, Any], frameworks: Set[str]) -> bool:
    """Return whether the framework or the roles of a file leave room for a section."""
    framework = train.get("framework") or next((name for name in sorted(frameworks) if name in train), None)
    name = section[1] if len(section) > 1 else None
    if name in frameworks:
        return framework == name or (framework is None and "roles" not in train)
    return name != "roles" or framework is None
