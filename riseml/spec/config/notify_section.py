"""The section `notify`: which events of an experiment are sent to webhooks. It names no address."""

from __future__ import annotations

import math
import re

from riseml.base.metric_names import is_metric_name
from riseml.base.states import TERMINAL, State
from riseml.spec.config.types import MetricCondition, NotifySection, Relation
from riseml.spec.scalars.texts import NO_METRIC_NAME, quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "notify")
_CONDITION = re.compile(r"(.*\S) *(>=|<=|>|<) *(\S+)")


def read_notify(file: SourceFile) -> NotifySection | None:
    """Return the section; None when the file has none, or when it is unusable. Problems go to `file`."""
    if not isinstance(file.value_at(_PATH), dict):
        return None
    ends: list[State] = []
    reached: list[MetricCondition] = []
    for at in range(len(file.value_at((*_PATH, "on")) or ())):
        path = (*_PATH, "on", at)
        text = file.value_at(path)
        if path in file.bad or not isinstance(text, str):
            continue
        if text.upper() in {state.value for state in TERMINAL}:
            ends.append(State(text.upper()))
        elif (condition := _read_condition(file, path, text)) is not None:
            reached.append(condition)
    names = [file.value_at((*_PATH, "to", at)) for at in range(len(file.value_at((*_PATH, "to")) or ()))]
    return NotifySection(
        ends=tuple(dict.fromkeys(ends)),
        reached=tuple(dict.fromkeys(reached)),
        to=tuple(dict.fromkeys(str(name) for name in names if name is not None)),
    )


def _read_condition(file: SourceFile, path: KeyPath, text: str) -> MetricCondition | None:
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        return None  # the schema has refused it
    if not is_metric_name(match[1]):
        problem, hint = NO_METRIC_NAME
        file.refuse(path, problem.format(quote_text(match[1])), hint)
        return None
    value = float(match[3])
    if not math.isfinite(value):
        file.refuse(path, f"{match[3]} is too large", "no metric reaches it")
        return None
    return MetricCondition(match[1], Relation(match[2]), value)
