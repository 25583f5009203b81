"""`repeat`: each point runs several times, and differs in the parameter `seed` alone."""

from __future__ import annotations

from dataclasses import replace

from riseml.spec.config.types import SEED
from riseml.spec.yaml.document import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

MOST_RUNS = 1_000
"""Runs of one point, and experiments of a set."""

_PATH: KeyPath = ("train", "repeat")
_PARAMETER: KeyPath = ("train", "parameters", SEED)


def add_seeds(root: Node) -> Node:
    """Return the file with the parameter that `repeat` makes, at its position, so that every rule for parameters holds
    for it. A parameter `seed` of the file or of the command line stays as it is.
    """
    train = root.get("train") if isinstance(root, MappingNode) else None
    key = _find_key(train, "repeat") if isinstance(train, MappingNode) else None
    if not isinstance(root, MappingNode) or not isinstance(train, MappingNode) or key is None:
        return root
    parameters = train.get("parameters") or MappingNode(key.position, ())
    count = _read_count(train.get("repeat"))
    if count is None or not isinstance(parameters, MappingNode) or parameters.get(SEED) is not None:
        return root
    seeds = tuple(ScalarNode(key.position, str(seed)) for seed in range(1, count + 1))
    entry = MappingEntry(ScalarNode(key.position, SEED), SequenceNode(key.position, seeds, flow=True))
    repeated = replace(parameters, entries=(*parameters.entries, entry))
    return _put(root, "train", _put(train, "parameters", repeated))


def read_repeat(file: SourceFile) -> int | None:
    """Return how often each point runs; None where nothing repeats. Refuse a parameter `seed` beside `repeat`, unless
    the command line gives it (`-p seed=3`): that one run is wanted then.
    """
    if file.value_at(_PATH) is None or _PATH in file.bad:
        return None
    if is_made_by_repeat(file, SEED):
        return int(file.value_at(_PATH))
    if file.find_position(_PARAMETER).file == file.find_position(_PATH).file:
        problem = "repeat makes the parameter seed, and train.parameters has one of this name"
        file.refuse_key(_PATH, problem, "remove one of them")
    return None


def is_made_by_repeat(file: SourceFile, name: str) -> bool:
    """Return True for the parameter that `repeat` makes."""
    return name == SEED and file.find_key_position(_PARAMETER) == file.find_key_position(_PATH)


def _read_count(node: Node | None) -> int | None:
    is_count = isinstance(node, ScalarNode) and node.plain and node.text.isascii() and node.text.isdecimal()
    count = int(node.text) if isinstance(node, ScalarNode) and is_count and len(node.text) <= 4 else 0
    return count if 1 <= count <= MOST_RUNS else None  # the schema refuses everything else


def _find_key(node: MappingNode, name: str) -> ScalarNode | None:
    return next((entry.key for entry in node.entries if entry.key.text == name), None)


def _put(node: MappingNode, name: str, value: Node) -> MappingNode:
    """Return the map with another value of a key; a new key is the last one."""
    if node.get(name) is None:
        return replace(node, entries=(*node.entries, MappingEntry(ScalarNode(value.position, name), value)))
    entries = (replace(entry, value=value) if entry.key.text == name else entry for entry in node.entries)
    return replace(node, entries=tuple(entries))
