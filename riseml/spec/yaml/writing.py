"""A tree of nodes as YAML text. Each scalar keeps its text and its quotes: `1.10` and `"012"` stay as they were."""

from __future__ import annotations

import yaml

from riseml.spec.yaml.document import MappingNode, Node, ScalarNode, SequenceNode

TEXT = "tag:yaml.org,2002:str"  # what a text that is no number, date, true, false or null gets
_LIST = "tag:yaml.org,2002:seq"
_MAP = "tag:yaml.org,2002:map"
_WIDTH = 2**20  # characters of a line; riseml.yml may be no longer


def write_document(root: Node) -> str:
    """Return the text of a document that has these nodes; comments and anchors are gone.

    Example:
        write_document(parse_document("a: [1, 1.10]", "x").root)   # "a: [1, 1.10]\\n"
    """
    resolver = yaml.SafeLoader("")
    return yaml.serialize(_convert(root, resolver), Dumper=yaml.SafeDumper, allow_unicode=True, width=_WIDTH)


def _convert(node: Node, resolver: yaml.SafeLoader) -> yaml.Node:
    match node:
        case ScalarNode(text=text, style=style):
            tag = TEXT if style else find_tag(resolver, text)
            return yaml.ScalarNode(tag, text, style=style or None)
        case SequenceNode(items=items, flow=flow):
            return yaml.SequenceNode(_LIST, [_convert(item, resolver) for item in items], flow_style=flow)
        case MappingNode(entries=entries):
            pairs = [(_convert(entry.key, resolver), _convert(entry.value, resolver)) for entry in entries]
            return yaml.MappingNode(_MAP, pairs, flow_style=False)


def find_tag(resolver: yaml.SafeLoader, text: str) -> str:
    """Return the YAML tag that a text without quotes gets: `tag:yaml.org,2002:int` for `012`."""
    return str(resolver.resolve(yaml.ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]  # so in PyYAML
