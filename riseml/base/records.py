"""The decorator `dataclass` of the standard library; its classes get their methods when one of them is first called.

The standard library compiles six methods for each frozen class. For the classes of riseml that took a fifth of the
server's cold start, and of `riseml validate`: both import hundreds of classes, and make objects of a few. This
module makes `__init__` itself. For a frozen class, the standard library compiles two more methods with it, and its
`__init__` finds each slot by name. Making ours takes a quarter of that time, and calling it takes half.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

_METHODS = ("__init__", "__repr__", "__eq__", "__hash__")
_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")


class _LateMethod:
    """Stands in a class for a method that is not made yet."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, owner: type, name: str, make: Callable[[type], None]) -> None:
        self._owner = owner
        self._name = name
        self._make = make

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        """Make the method, and return it: Python calls this for a method that is looked up."""
        self._make(self._owner)
        return self._owner.__dict__[self._name].__get__(instance, kind)


class _DefaultFactory:
    """The default of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _DefaultFactory()


def _make_init(owner: Any, *, frozen: bool) -> None:
    """Give a class its `__init__`: each parameter goes into its slot, for a frozen class by the slot's descriptor."""
    names: dict[str, Any] = {"_FACTORY": _FACTORY}
    usual = ["self"]
    named = ["*"]
    lines = []
    fields = dataclasses.fields(owner)
    for field in fields:
        parameter, line, used = _write_field(owner, field, frozen=frozen)
        (named if field.kw_only else usual).append(parameter)
        lines.append(line)
        names |= used
    parameters = ", ".join(usual + (named if len(named) > 1 else []))
    body = "\n  ".join(lines or ["pass"])
    text = f"def make({', '.join(names)}):\n def __init__({parameters}):\n  {body}\n return __init__"
    namespace: dict[str, Any] = {}
    exec(text, sys.modules[owner.__module__].__dict__, namespace)  # text of field names alone, as dataclasses does
    initializer = namespace["make"](**names)
    initializer.__qualname__ = f"{owner.__qualname__}.__init__"
    initializer.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    owner.__init__ = initializer


def _write_field(owner: Any, field: dataclasses.Field[Any], *, frozen: bool) -> tuple[str, str, dict[str, Any]]:
    """Return the parameter and the line of `__init__` for a field, and the objects that they use, by name."""
    name = parameter = value = field.name
    used: dict[str, Any] = {}
    if field.default_factory is not dataclasses.MISSING:
        used[f"_make_{name}"] = field.default_factory
        parameter = f"{name}=_FACTORY"
        value = f"_make_{name}() if {name} is _FACTORY else {name}"
    elif field.default is not dataclasses.MISSING:
        used[f"_default_{name}"] = field.default
        parameter = f"{name}=_default_{name}"
    if not frozen:
        return parameter, f"self.{name} = {value}", used
    used[f"_set_{name}"] = getattr(owner, name).__set__
    return parameter, f"_set_{name}(self, {value})", used


def _make_methods(owner: Any, options: dict[str, bool]) -> None:
    """Let the standard library make some methods. Two threads that do so at the same time make equal ones."""
    content: dict[str, Any] = {field.name: field for field in dataclasses.fields(owner)}
    content["__annotations__"] = {name: field.type for name, field in content.items()}
    content |= {"__module__": owner.__module__, "__doc__": owner.__doc__}
    model: Any = dataclasses.dataclass(init=False, **options)(type(owner.__name__, (), content))
    for name, method in tuple(owner.__dict__.items()):
        generated = model.__dict__.get(name)
        if generated is not None and isinstance(method, _LateMethod):
            generated.__qualname__ = f"{owner.__qualname__}.{name}"
            setattr(owner, name, generated)


def _choose_maker(name: str, *, frozen: bool, order: bool) -> Callable[[type], None]:
    """Return what makes a method and few others: each takes time."""
    if name == "__init__":
        return partial(_make_init, frozen=frozen)
    if name == "__repr__":
        return partial(_make_methods, options={"eq": False})
    return partial(_make_methods, options={"repr": False, "unsafe_hash": frozen, "order": order})


def _prepare_class(cls: Any, *, frozen: bool, order: bool) -> Any:
    """Return the class with fields and slots, and with a `_LateMethod` for each method that it does not define."""
    own = cls.__dict__.keys() & {*_METHODS, *_ORDER}
    record_class: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    for name in (*_METHODS, *(_ORDER if order else ())):
        if name not in own:
            setattr(
                record_class, name, _LateMethod(record_class, name, _choose_maker(name, frozen=frozen, order=order))
            )
    if frozen:
        record_class.__setattr__ = _refuse_value
        record_class.__delattr__ = _refuse_removal
        record_class.__getstate__ = _read_state
        record_class.__setstate__ = _write_state
    elif "__hash__" not in own:
        record_class.__hash__ = None  # as in the standard library, mutable classes are not hashable
    return record_class


def _refuse_value(_: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_removal(_: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _read_state(record: Any) -> list[object]:
    """Return the values of a frozen record, for `pickle` and `copy`."""
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


def _write_state(record: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(record), state, strict=True):
        object.__setattr__(record, field.name, value)


if TYPE_CHECKING:  # type checkers know the standard library's decorator by its name
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, slots: bool, frozen: bool = False, order: bool = False) -> Callable[[type], type]:
        """Return the decorator of a dataclass with slots. The options are those of `dataclasses.dataclass`.

        Example:
            >>> @dataclass(frozen=True, slots=True)
            ... class Size:
            ...     width: int
            ...     height: int = 1
        """
        assert slots, "dataclasses.dataclass makes classes without slots"
        return partial(_prepare_class, frozen=frozen, order=order)
