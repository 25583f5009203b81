"""Placeholders in the lines of `run`: `{{ name }}`."""

from __future__ import annotations

import re

BUILT_IN_PLACEHOLDERS = frozenset(
    {"job_name", "task_index", "worker_hosts", "ps_hosts", "worker_index", "num_workers", "data_dir", "output_dir"}
)
"""The names that riseml fills in for each job."""

_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_PLACEHOLDER = re.compile(rf"\{{\{{\s*({_NAME}(?:\.{_NAME})*)\s*\}}\}}")


def find_placeholders(line: str) -> tuple[tuple[str, int, int], ...]:
    """Return every placeholder of a line as (name, start, end), in order; `line[start:end]` is the whole `{{ name }}`.

    Example: `find_placeholders("t {{lr}}")` is `(("lr", 2, 8),)`.
    """
    return tuple((match[1], match.start(), match.end()) for match in _PLACEHOLDER.finditer(line))


def variable_name(parameter: str) -> str:
    """Return the environment variable of a parameter: `learning-rate` is LEARNING_RATE, `optimizer.lr` OPTIMIZER_LR."""
    return parameter.upper().replace("-", "_").replace(".", "_")
