"""The section `metrics`: patterns that find metrics in lines of output."""

from __future__ import annotations

import re
import warnings

from riseml.base.metric_names import STEP, is_metric_name
from riseml.spec.scalars.texts import NO_METRIC_NAME, quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "metrics")


def read_metrics(file: SourceFile) -> tuple[tuple[str, str], ...]:
    """Return the names and patterns, in the order of the file; problems go to `file`.

    How long a pattern takes is not checked here: the server bounds the time that it takes for each line.
    """
    patterns: list[tuple[str, str]] = []
    for name in file.value_at(_PATH) or {}:
        path = (*_PATH, name)
        pattern = file.value_at(path)
        if path in file.bad or not isinstance(pattern, str):
            continue
        problem, hint = _find_problem(pattern)
        if name != STEP and not is_metric_name(name):
            problem, hint = NO_METRIC_NAME
            file.refuse_key(path, problem.format(quote_text(name)), hint)
        elif problem:
            file.refuse(path, problem, hint)
        else:
            patterns.append((name, pattern))
    return tuple(patterns)


def _find_problem(pattern: str) -> tuple[str, str]:
    """Return what is wrong with a pattern, and what to do; two empty texts when nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what later versions of Python will read in another way
            groups = re.compile(pattern).groups
    except re.error as error:
        return f"is not a regular expression: {error.msg}", "put a \\ before a character that stands for itself"
    except (OverflowError, RecursionError):
        return "is not a regular expression that Python can use", "write a shorter one"
    if groups == 0:
        return "has no group", "put the part that is the value in brackets, such as ([0-9.]+)"
    if groups > 1:
        return f"has {groups} groups", "put only the value in brackets; write (?:...) for other groups"
    return "", ""
