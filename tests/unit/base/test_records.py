"""`riseml.base.records.dataclass` makes classes that do all that those of the standard library do, and later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import operator
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from riseml.base import records


def make_classes(decorate: Any) -> dict[str, type]:
    """The same classes with one decorator or the other."""

    @decorate(frozen=True, slots=True)
    class Size:
        """A frozen one."""

        width: int
        height: int = 1
        names: tuple[str, ...] = ()
        more: list[str] = dataclasses.field(default_factory=list, repr=False, compare=False)
        unit: str = dataclasses.field(default="m", kw_only=True)

    @decorate(frozen=True, slots=True)
    class Box(Size):
        """One that is derived, with a method of its own in place of one that is made."""

        depth: int = 2

        def __repr__(self) -> str:
            return f"a box of {self.width}"

    @decorate(frozen=True, slots=True, order=True)
    class Key:
        """One with an order."""

        width: int
        height: int = 1

    @decorate(slots=True)
    class Count:
        """One that may change."""

        width: int
        height: int = 1
        more: list[str] = dataclasses.field(default_factory=list)

    return {one.__name__: one for one in (Size, Box, Key, Count)}


OURS, USUAL = make_classes(records.dataclass), make_classes(dataclasses.dataclass)
ACTS: dict[str, Callable[[type[Any]], object]] = {
    "signature": lambda kind: str(inspect.signature(kind)),
    "positions": lambda kind: repr(kind(3, 4)),
    "names": lambda kind: repr(kind(height=4, width=3)),
    "too few": lambda kind: kind(),
    "unknown name": lambda kind: kind(1, color="red"),
    "a list of its own": lambda kind: kind(3).more is kind(3).more,
    "a list that is given": lambda kind: kind(3, more=["a"]).more,
    "equal": lambda kind: (kind(3) == kind(3, 1), kind(3) == kind(4), kind(3) != kind(3), kind(3) == (3, 1)),
    "hash": lambda kind: hash(kind(3)) == hash(kind(3, 1)),
    "keys": lambda kind: len({kind(3), kind(3), kind(4)}),
    "order": lambda kind: sorted([kind(3), kind(1), kind(2)], key=lambda one: one.width)[0].width,
    "less": lambda kind: (operator.lt(kind(1), kind(2)), operator.ge(kind(1), kind(2))),
    "changed value": lambda kind: setattr(kind(3), "width", 5),
    "other attribute of an object": lambda kind: setattr(kind(3), "height", "x"),
    "removed value": lambda kind: delattr(kind(3), "width"),
    "replace": lambda kind: repr(dataclasses.replace(kind(3), height=9)),
    "fields": lambda kind: [(one.name, one.type, one.default) for one in dataclasses.fields(kind)],
    "dictionary": lambda kind: dataclasses.asdict(kind(3)),
    "copy": lambda kind: copy.deepcopy(kind(3)) == kind(3) == copy.copy(kind(3)),
    "match": lambda kind: kind.__match_args__,
    "slots": lambda kind: (kind.__slots__, hasattr(kind(3), "__dict__")),
    "names of methods": lambda kind: kind.__init__.__qualname__.replace("__create_fn__.<locals>.", ""),
    "text": lambda kind: kind.__doc__,
    "names that annotations mean": lambda kind: kind.__init__.__globals__["Any"],
}


def act(what: str, kind: type[Any]) -> object:
    try:
        return ACTS[what](kind)
    except (TypeError, AttributeError) as error:
        return type(error), str(error).replace(f"{kind.__qualname__}.", "")


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("what", ACTS)
def test_it_does_what_the_standard_library_does(what: str, name: str) -> None:
    fresh = make_classes(records.dataclass)[name]  # whose methods this act is the first to need
    assert act(what, fresh) == act(what, USUAL[name])
    assert act(what, OURS[name]) == act(what, USUAL[name])


@records.dataclass(frozen=True, slots=True)
class Travelled:
    """One that is pickled."""

    width: int
    height: int = 1


def test_a_record_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Travelled(3))) == Travelled(3)


def test_methods_are_made_when_one_is_asked_for() -> None:
    kind = make_classes(records.dataclass)["Size"]

    def list_made() -> list[str]:
        return [name for name in records._METHODS if inspect.isfunction(kind.__dict__[name])]

    before = list_made()
    made = kind(3)
    used = list_made()
    assert (before, used, {made: repr(made)}[made]) == (
        [],
        ["__init__"],
        "make_classes.<locals>.Size(width=3, height=1, names=(), unit='m')",
    )
    assert list_made() == [*records._METHODS]


def test_threads_that_need_a_class_at_once_get_equal_objects() -> None:
    kind, found = make_classes(records.dataclass)["Size"], []
    together = threading.Barrier(8)

    def make() -> None:
        together.wait()
        found.append(kind(3))

    threads = [threading.Thread(target=make, daemon=True) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 8
    assert set(found) == {kind(3)}
