"""Write the riseml.yml of an import: texts of several lines as blocks, everything else as short as YAML allows."""

from __future__ import annotations

from typing import Any

import yaml


class _BlockDumper(yaml.SafeDumper):
    """Writes a text of several lines as a block."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_BlockDumper.add_representer(str, _write_text)


def write_config(config: dict[str, Any]) -> str:
    """Return a riseml.yml."""
    return yaml.dump(config, Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=2**20)
