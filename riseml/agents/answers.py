"""Answers that an agent can read: short, and honest about what was left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from riseml.base.records import dataclass
from riseml.cli.output.text import clean_text

if TYPE_CHECKING:
    from riseml import wire

Answer = TypeVar("Answer", bound=Mapping[str, object])

MOST_BYTES = 48_000
"""Bytes of one answer as JSON: about a tenth of what an agent reads in one go."""

_LEAST_CHARACTERS = 60  # of a text, however long the answer is


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long the parts of an answer may be."""

    items: int = 50  # of a list, or of a mapping
    characters: int = 2_000  # of a text


class AnswerCutter:
    """Shortens one answer, and notes what it leaves out.

    Example:
        >>> AnswerCutter(Bounds(items=1)).cut_value({"jobs": ["a", "b"]})
        {'jobs': ['a']}
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.notes: list[str] = []

    def cut_value(self, value: object, path: str = "") -> object:
        """Return a value with the first items of its lists, and the beginnings of its texts."""
        if isinstance(value, str):
            return self._cut_text(value, path)
        if isinstance(value, list | tuple):
            first_items = value[: self._bounds.items]
            if len(first_items) < len(value):
                self._note(f"{path}: {len(first_items)} of {len(value):,}")
            return [self.cut_value(item, f"{path}[]") for item in first_items]
        if isinstance(value, Mapping):
            pairs = list(value.items())
            most = self._bounds.items if path else len(pairs)  # the keys of the answer itself all stay
            if len(pairs) > max(most, 60):  # more than any shape has: names of a user
                self._note(f"{path}: {most} of {len(pairs):,}")
                pairs = pairs[:most]
            return {key: self.cut_value(item, f"{path}.{key}".lstrip(".")) for key, item in pairs}
        return value

    def _cut_text(self, text: str, path: str) -> str:
        most = self._bounds.characters
        if len(text) <= most or path in ("token", "cursor"):
            return text
        self._note(f"{path}: {most:,} of {len(text):,} characters")
        return f"{text[:most]}..."

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def shorten_answer(answer: Answer, bounds: Bounds | None = None) -> Answer:
    """Return an answer of at most about `MOST_BYTES`, whose `cut` names what was left out."""
    limits = bounds or Bounds()
    while True:
        cutter = AnswerCutter(limits)
        short = cast("dict[str, object]", cutter.cut_value(answer))
        short["cut"] = cutter.notes
        is_least = limits.items == 1 and limits.characters == _LEAST_CHARACTERS
        if is_least or len(json.dumps(short, ensure_ascii=False).encode("utf-8", "replace")) <= MOST_BYTES:
            return cast("Answer", short)
        limits = Bounds(max(1, limits.items // 2), max(_LEAST_CHARACTERS, limits.characters // 2))


def describe_experiment(view: wire.ExperimentView) -> str:
    """Return what an experiment is and does, as a sentence."""
    kind = "Set" if view["type"] == "set" else "Experiment"
    search = view.get("search")  # a server of an earlier version has none
    why = search["message"] if search else view["message"]
    sentence = f"{kind} {view['id']} of project {view['project']} is {view['state']}"
    return clean_text(f"{sentence}: {why}." if why else f"{sentence}.")
