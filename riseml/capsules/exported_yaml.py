"""Write YAML for other programs: a text that one of their readers would take for a number stands in quotes.

PyYAML quotes what YAML 1.1 reads as a number. docker compose and Kubernetes read YAML 1.2, too, where 1e5 and 08 are
numbers: the variable of a job would be 100000, or refused.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|0o[0-7_]+", re.ASCII)


class _TextDumper(yaml.SafeDumper):
    """Writes texts so that they stay texts."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if _NUMBER.fullmatch(text) else None)


_TextDumper.add_representer(str, _write_text)


def write_yaml(document: dict[str, Any]) -> str:
    """Return the text of a file, with the keys in their order.

    Example:
        >>> write_yaml({"LR": "1e5", "NAME": "adam"})
        "LR: '1e5'\\nNAME: adam\\n"
    """
    return yaml.dump(document, Dumper=_TextDumper, sort_keys=False, allow_unicode=True, width=2**20)
