"""The mappings of another system's file, which note what a conversion has read: the rest is named to the user."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from riseml.base.errors import RisemlError
from riseml.base.records import dataclass

_MIB = 2**20
_UNITS = {
    **{"m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18},
    **{"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60},
}
"""The bytes of each unit of memory that Kubernetes knows."""
_QUANTITY = re.compile(r"(\d+(?:\.\d*)?(?:[eE]\d+)?)([A-Za-z]*)")
_NOTHING = frozenset({"", "~", "null"})
_MOST_DIGITS = 18  # digits of a whole number


class ForeignValueError(RisemlError):
    """A value of another system's file is not what that system takes there."""

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"{path} is not {expected}")


@dataclass(frozen=True, slots=True)
class ImportedConfig:
    """A riseml.yml, and the parts of the other system's file that it leaves out."""

    project: str
    text: str
    left_out: tuple[str, ...]  # a path in the file, and often the reason or what to write instead
    changed: tuple[str, ...] = ()  # what means something else in the riseml.yml
    to_fill: str = ""  # what the user must write into the riseml.yml before it runs; empty: nothing


class ForeignFields:
    """A mapping of a file whose values are texts, lists and mappings; it notes the keys that were read."""

    def __init__(self, value: Any, path: str = "") -> None:
        """Take a mapping.

        Args:
            value: the mapping; None: one without keys.
            path: its place in the file, for messages: `spec.runPolicy`.

        Raises:
            ForeignValueError: it is not a mapping.
        """
        if value is None or (isinstance(value, str) and value in _NOTHING):
            value = {}
        if not isinstance(value, dict):
            raise ForeignValueError(path or "the file", "a mapping")
        self.path = path
        self._value: dict[str, Any] = value
        self._read: set[str] = set()
        self._sections: list[ForeignFields] = []

    def __contains__(self, key: str) -> bool:
        value = self._value.get(key)
        return value is not None and not (isinstance(value, str) and value in _NOTHING)

    def names(self) -> tuple[str, ...]:
        """Return the keys in the order of the file."""
        return tuple(self._value)

    def name_key(self, key: str) -> str:
        """Return the path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def take(self, *keys: str) -> None:
        """Note keys as read that need no conversion."""
        self._read.update(keys)

    def peek(self, key: str) -> Any:
        """Return a value as it is, without noting it as read."""
        return self._value.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Return a text.

        Raises:
            ForeignValueError: it is a list or a mapping.
        """
        self._read.add(key)
        value = self._value.get(key, default)
        if not isinstance(value, str):
            raise ForeignValueError(self.name_key(key), "a text")
        return value

    def whole(self, key: str, default: int) -> int:
        """Return a whole number from 0 up.

        Raises:
            ForeignValueError: it is something else.
        """
        text = self.text(key).strip()
        if key not in self:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise ForeignValueError(self.name_key(key), "a whole number")
        return int(text)

    def words(self, key: str) -> list[str]:
        """Return a list of texts; empty when the key is missing.

        Raises:
            ForeignValueError: it is something else.
        """
        self._read.add(key)
        value = self._value.get(key) if key in self else []
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise ForeignValueError(self.name_key(key), "a list of texts")
        return value

    def section(self, key: str) -> ForeignFields:
        """Return the mapping at a key, without keys when it is missing; its keys are noted one by one."""
        self._read.add(key)
        section = ForeignFields(self._value.get(key), self.name_key(key))
        self._sections.append(section)
        return section

    def sections(self, key: str) -> list[ForeignFields]:
        """Return the mappings of a list."""
        self._read.add(key)
        value = self._value.get(key) if key in self else []
        if not isinstance(value, list):
            raise ForeignValueError(self.name_key(key), "a list")
        sections = [ForeignFields(part, f"{self.name_key(key)}[{index}]") for index, part in enumerate(value)]
        self._sections += sections
        return sections

    def list_left(self) -> Iterator[str]:
        """Yield the paths of the keys that nothing has read, in the order of the file."""
        sections = {section.path: section for section in self._sections}
        for key in self._value:
            path = self.name_key(key)
            if key not in self._read:
                yield path
            elif path in sections:
                yield from sections.pop(path).list_left()
            else:
                parts = [part for name, part in sections.items() if re.fullmatch(rf"{re.escape(path)}\[\d+\]", name)]
                for part in parts:
                    yield from part.list_left()


def name_project(name: str) -> str:
    """Return the name of a project that riseml takes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "imported"


def read_memory(text: str, path: str) -> str:
    """Return an amount of memory as riseml.yml has it: `512MiB`.

    Raises:
        ForeignValueError: it is not an amount.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        raise ForeignValueError(path, "an amount of memory")
    try:
        return f"{max(1, round(float(match[1]) * _UNITS[match[2]] / _MIB))}MiB"
    except OverflowError:
        raise ForeignValueError(path, "an amount of memory: the number is too large") from None


def read_cores(text: str, path: str) -> float:
    """Return a number of cores.

    Raises:
        ForeignValueError: it is not a number.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(m?)", text)
    if match is None or len(text) > _MOST_DIGITS:
        raise ForeignValueError(path, "a number of cores")
    return float(match[1]) / (1000 if match[2] else 1)


def join_words(words: list[str], quote: Callable[[str], str] = shlex.quote) -> str:
    """Return the words of a command as a line of a shell; the line of `sh -c LINE` is that line."""
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and re.fullmatch("-[a-z]*c", words[1]):
        return words[2]
    return " ".join(map(quote, words))


def quote_pieces(pieces: Iterable[tuple[str, bool]]) -> str:
    """Return one word of a shell from its pieces.

    Args:
        pieces: each text, and whether it is a reference to a variable (`${NAME}`), which the shell replaces.
    """
    word = []
    literal = ""
    for text, is_reference in pieces:
        if not is_reference:
            literal += text
            continue
        word += [shlex.quote(literal)] if literal else []
        word.append(f'"{text}"')
        literal = ""
    return "".join([*word, *([shlex.quote(literal)] if literal or not word else [])])
