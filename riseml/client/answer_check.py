"""Checks answers of a server against the shapes of `riseml.wire`: any program, or another version, may have sent them.

The answer itself is returned as it came: keys that only a newer server knows stay in it, and what is one of several
texts may be another one. `answer_shapes.json` has the shapes, which `scripts/wire_shapes.py` writes from the typed
dictionaries, because the import of `riseml.wire` or of msgspec takes a quarter of what `riseml status` takes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from riseml import wire

Answer = TypeVar("Answer")
Place = tuple["Place", str | int] | None
"""Where a value is: the place of what holds it, and its key or its number; None: it is the answer itself."""

Check = Callable[[Any, Place], None]
"""Checks the inside of a list or an object.

Raises:
    WrongAnswer: it is not as it must be.
"""

Kind = tuple[frozenset[type], Check | None]
"""The types that a value may have, and what checks its inside."""

_LASTING_KEYS: Mapping[str, Sequence[str]] = {"ServerView": ("version", "pid", "executor", "active")}
"""Keys that servers of every version send: a command compares versions before anything else."""

_LONGEST_KEY = 100  # characters of a key, in a message

_TYPES: Mapping[str, frozenset[type]] = {
    "str": frozenset({str}),
    "int": frozenset({int}),
    "float": frozenset({float, int}),
    "bool": frozenset({bool}),
}
_NOUNS: Mapping[type, str] = {
    NoneType: "null",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


_ENTRIES = {
    "state": "StateEntry",
    "line": "LineEntry",
    "lines": "LinesEntry",
    "report": "ReportEntry",
    "end": "EndEntry",
}


class WrongAnswer(Exception):
    """An answer has another shape than it must have; the text says where and how."""


class _Names:
    """Stands for `riseml.wire` where the program runs: each shape is its name."""

    def __getattr__(self, name: str) -> Any:
        return name


WIRE_NAMES = _Names()


class AnswerCheck:
    """Checks the answers of one server. Several threads may use it at the same time.

    Args:
        allows_absent: the server has another version, which may not send every key yet.

    Example:
        AnswerCheck().check({"names": ["4", 5]}, WIRE_NAMES.NameList)  # WrongAnswer: names[1] is a number
    """

    def __init__(self, *, allows_absent: bool = False) -> None:
        self._allows_absent = allows_absent
        self._shapes: dict[str, _Shape] = {}
        self._kinds: dict[str, Kind] = {"any": (frozenset(_NOUNS), None)}

    def check(self, answer: Any, shape: type[Answer]) -> Answer:
        """Return an answer as it came, after checking it.

        Args:
            answer: as JSON.
            shape: a typed dictionary of `riseml.wire`; its name, from `WIRE_NAMES`, where the program runs.

        Raises:
            WrongAnswer: a key is absent, or its value has another type.
        """
        if type(answer) is not dict:
            raise WrongAnswer(f"it is {_NOUNS[type(answer)]}")
        name = cast("str", shape)
        self.find_shape(name).check(answer, None)
        if name == "ComparisonView":
            _check_lengths(cast("wire.ComparisonView", answer))
        return cast("Answer", answer)

    def check_entry(self, entry: Any) -> wire.Entry:
        """Return an entry of a log as it came, after checking it; of a type that a newer server knows, its cursor."""
        name = entry.get("type") if type(entry) is dict else None
        shape: Any = _ENTRIES.get(str(name), "PingEntry")
        checked: wire.Entry = self.check(entry, shape)
        return checked

    def find_shape(self, name: str) -> _Shape:
        """Return a shape by its name."""
        shape = self._shapes.get(name)
        if shape is None:
            kinds = _load_shapes()[name]
            required = _LASTING_KEYS.get(name, ()) if self._allows_absent else [key for key in kinds if key[-1] != "?"]
            shape = self._shapes[name] = _Shape(kinds, required, self.read_kind)
        return shape

    def read_kind(self, kind: str) -> Kind:
        """Return the types that a value of a kind has, and what checks the inside of the value."""
        result = self._kinds.get(kind)
        if result is None:
            result = self._kinds[kind] = self._parse_kind(kind)
        return result

    def _parse_kind(self, kind: str) -> Kind:
        if kind[0] == "?":
            types, inside = self.read_kind(kind[1:])
            return types | {NoneType}, inside
        if kind[0] == "[":
            return frozenset({list}), partial(self._check_list, kind[1:])
        if kind[0] == "{":
            return frozenset({dict}), partial(self._check_object, kind[1:])
        scalars = [_TYPES[part] for part in kind.split("/") if part in _TYPES]
        if scalars:
            return frozenset().union(*scalars), None
        return frozenset({dict}), lambda value, place: self.find_shape(kind).check(value, place)

    def _check_list(self, inner: str, value: list[Any], place: Place) -> None:
        self._check_elements(inner, value, enumerate(value), place)

    def _check_object(self, inner: str, value: dict[str, Any], place: Place) -> None:
        self._check_elements(inner, value.values(), value.items(), place)

    def _check_elements(
        self, inner: str, values: Iterable[Any], items: Iterable[tuple[int | str, Any]], place: Place
    ) -> None:
        types, inside = self.read_kind(inner)
        if not types.issuperset(map(type, values)):
            key, wrong = next((key, value) for key, value in items if type(value) not in types)
            raise _make_wrong(wrong, (place, key))
        if inside is not None:
            for key, value in items:
                if value is not None:
                    inside(value, (place, key))


class _Shape:
    """The keys of one typed dictionary, and their kinds."""

    def __init__(self, kinds: Mapping[str, str], required: Sequence[str], read_kind: Callable[[str], Kind]) -> None:
        self._kinds = {name.removesuffix("?"): read_kind(kind) for name, kind in kinds.items()}
        self._insides = [(name, inside) for name, (_, inside) in self._kinds.items() if inside is not None]
        self._required = required
        self._optional = [name for name in self._kinds if name not in required]
        # two names at least: one alone would give no tuple
        self._read = itemgetter(*required, *required[:1]) if required else None
        self._passed: set[tuple[type, ...]] = set()  # types of all values, as they were right before: one look-up

    def check(self, value: dict[str, Any], place: Place) -> None:
        """Check a value; see `AnswerCheck.check`."""
        if self._read is not None:
            self._check_required(value, self._read, place)
        if self._optional:
            self._check_types(value, [name for name in self._optional if name in value], place)
        for name, inside in self._insides:
            inner = value.get(name)
            if inner or inner == {}:  # not: null, or an empty list
                inside(inner, (place, name))

    def _check_required(
        self, value: dict[str, Any], read: Callable[[dict[str, Any]], tuple[Any, ...]], place: Place
    ) -> None:
        try:
            types = tuple(map(type, read(value)))
        except KeyError as error:
            raise WrongAnswer(f"{_show_place((place, str(error.args[0])))} is absent") from None
        if types not in self._passed:
            self._check_types(value, self._required, place)
            self._passed.add(types)

    def _check_types(self, value: dict[str, Any], names: Iterable[str], place: Place) -> None:
        for name in names:
            if type(value[name]) not in self._kinds[name][0]:
                raise _make_wrong(value[name], (place, name))


@cache
def _load_shapes() -> Mapping[str, Mapping[str, str]]:
    path = os.path.join(os.path.dirname(__file__), "answer_shapes.json")
    with open(path, "rb", buffering=0) as file:
        shapes: Mapping[str, Mapping[str, str]] = json.loads(file.read())
    return shapes


def _check_lengths(comparison: wire.ComparisonView) -> None:
    """Check that each difference has one value for each experiment.

    Raises:
        WrongAnswer: with the place of the first that has more or fewer.
    """
    count = len(comparison["experiments"])
    lists: Mapping[str, Iterable[Sequence[object]]] = {
        **{key: (row["values"] for row in comparison[key]) for key in ("parameters", "config", "environment")},
        "code": (row["versions"] for row in comparison["code"]),
        "metrics": (row["metrics"] for row in comparison["metrics"]),
    }
    for key, rows in lists.items():
        for number, values in enumerate(rows):
            if len(values) != count:
                raise WrongAnswer(f"{key}[{number}] has {len(values)} values for {count} experiments")


def _make_wrong(value: object, place: Place) -> WrongAnswer:
    return WrongAnswer(f"{_show_place(place)} is {_NOUNS[type(value)]}")


def _show_place(place: Place) -> str:
    """Return a place for people: `experiments[3].jobs`."""
    text = ""
    while place is not None:
        place, key = place
        text = f"[{key}]{text}" if isinstance(key, int) else f".{key[:_LONGEST_KEY]}{text}"
    return text.removeprefix(".")
