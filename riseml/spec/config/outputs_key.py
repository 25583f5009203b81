"""The key `outputs`, of `train` and of roles: the files that are moved into OUTPUT_DIR when a job ends."""

from __future__ import annotations

from riseml.spec.scalars.globs import refuse_alternatives
from riseml.spec.scalars.output_patterns import parse_output_pattern
from riseml.spec.scalars.texts import BadText
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile


def read_outputs(file: SourceFile, section: KeyPath) -> tuple[str, ...]:
    """Return the patterns of a section, each once; none without the key. Problems go to `file`."""
    patterns: list[str] = []
    for part, text in file.items_at((*section, "outputs")).items():
        try:
            refuse_alternatives(text)
            parse_output_pattern(text)
        except BadText as bad:
            file.refuse(part, bad.problem, bad.hint)
        else:
            patterns.append(text)
    return tuple(dict.fromkeys(patterns))
