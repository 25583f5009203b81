"""The text of a riseml.yml with the values of the command line in it, and without the values of variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from riseml.spec.config.command_lines import join_continued_lines
from riseml.spec.config.overrides import Overrides, apply_overrides
from riseml.spec.yaml.document import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode, parse_document
from riseml.spec.yaml.writing import write_document


def resolve_config(text: str, overrides: Overrides) -> str:
    """Return a riseml.yml in which `-p` and `--set` are written; without any, the text as it is.

    Args:
        text: a valid riseml.yml.
        overrides: values of the command line that it accepts.
    """
    if not overrides.parameters and not overrides.settings:
        return text
    root = parse_document(text, "riseml.yml").root
    return text if root is None else _write(apply_overrides(root, overrides)[0])


def hide_variables(text: str) -> str:
    """Return a riseml.yml whose `env` has names and no values: a value may be a secret. Names of secrets stay."""
    root = parse_document(text, "riseml.yml").root
    train = root.get("train") if isinstance(root, MappingNode) else None
    variables = train.get("env") if isinstance(train, MappingNode) else None
    if root is None or variables is None:
        return text
    names = tuple(_list_without_values(variables))
    return _write(_put_value(root, ("train", "env"), SequenceNode(variables.position, names)))


def read_written_variables(text: str) -> dict[str, str]:
    """Return the variables whose values stand in a riseml.yml; a file with errors has none."""
    from riseml.spec.config.loader import check_config

    spec = check_config(text).spec
    variables = () if spec is None else spec.train.env
    return {variable.name: variable.value for variable in variables if variable.value is not None}


def _write(root: Node) -> str:
    return write_document(join_continued_lines(root))


def _list_without_values(variables: Node) -> Iterator[Node]:
    """Yield the items of a list with the names from either form of `env`; a reference to a secret stays."""
    match variables:
        case MappingNode(entries=entries):
            for entry in entries:
                reference = isinstance(entry.value, MappingNode)
                yield (
                    replace(variables, entries=(entry,))
                    if reference
                    else ScalarNode(entry.key.position, entry.key.text)
                )
        case SequenceNode(items=items):
            for item in items:
                if isinstance(item, ScalarNode):
                    yield replace(item, text=item.text.partition("=")[0])
                elif isinstance(item, MappingNode):
                    yield item


def _put_value(node: Node, path: tuple[str, ...], value: Node) -> Node:
    """Return the node with another value at a path that exists."""
    if not path or not isinstance(node, MappingNode):
        return value
    entries = (
        MappingEntry(entry.key, _put_value(entry.value, path[1:], value)) if entry.key.text == path[0] else entry
        for entry in node.entries
    )
    return replace(node, entries=tuple(entries))
