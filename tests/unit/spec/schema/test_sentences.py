"""Words for problems: what a key probably means, which types it takes, and examples as YAML."""

from __future__ import annotations

from typing import Any

import pytest

from riseml.spec.schema.contract import CONFIG_CONTRACT, POOL_CONTRACT, FileContract
from riseml.spec.schema.sentences import format_flow, list_types
from riseml.spec.yaml.document import MappingNode, Node, parse_document
from riseml.spec.yaml.problems import KeyPath

KEYS = [(contract, path) for contract in (CONFIG_CONTRACT, POOL_CONTRACT) for path, _ in contract.walk()]
IDS = [".".join(map(str, path)) for _, path in KEYS]


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, ["string"]),
        ({"type": ["object", "null"]}, ["object"]),
        ({"type": ["boolean", "object"], "not": {"const": True}}, ["false", "object"]),
        ({"type": "boolean"}, ["boolean"]),
    ],
)
def test_a_value_that_must_not_be_true_is_false(schema: dict[str, Any], types: list[str]) -> None:
    assert list_types(schema) == types


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.5, "1.5"),
        ("1.5", '"1.5"'),
        ("a: b", '"a: b"'),
        ("python:3.11", "python:3.11"),
        ({"a": [1, "x"]}, "{a: [1, x]}"),
    ],
)
def test_a_value_is_written_on_one_line(value: object, text: str) -> None:
    assert format_flow(value) == text


@pytest.mark.parametrize(("contract", "path"), KEYS, ids=IDS)
def test_examples_of_the_reference_are_yaml_of_the_same_value(contract: FileContract, path: KeyPath) -> None:
    for example in contract.at(path)["examples"]:
        root = parse_document(f"{path[-1]}: {format_flow(example)}\n", "example").root
        assert isinstance(root, MappingNode)
        assert _plain(root.entries[0].value) == _texts(example)


def _plain(node: Node) -> Any:
    if isinstance(node, MappingNode):
        return {entry.key.text: _plain(entry.value) for entry in node.entries}
    return [_plain(item) for item in node.items] if hasattr(node, "items") else node.text


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_texts(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
