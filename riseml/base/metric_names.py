"""Names of metrics: any printable text. Standard library only.

The module of jobs (`riseml.job_programs.reports`) has the same rule for itself, because it runs without riseml.
"""

from __future__ import annotations

import json
from functools import lru_cache

LONGEST = 64
"""Characters of a name; the store has room for as many."""

STEP = "step"
"""What stands beside the metrics of a report, and is none of them."""


def is_metric_name(name: str) -> bool:
    """Return True for a name that a metric may have: printable characters of any script, spaces included.

    Example:
        >>> is_metric_name("val loss"), is_metric_name("step"), is_metric_name("two\\\\nlines")
        (True, False, False)
    """
    return 0 < len(name) <= LONGEST and name != STEP and name.isprintable()


@lru_cache(maxsize=1024)
def read_quoted_name(quoted: bytes) -> str | None:
    """Return the name that stands in a report as text of JSON, without its quotes; None: it is not a name of a metric.

    The name may be `step`.
    """
    try:
        name = quoted.decode() if b"\\" not in quoted else json.loads(b'"%b"' % quoted)
    except ValueError:
        return None
    return name if quoted == STEP.encode() or is_metric_name(name) else None
