"""A folder of an object store in memory, for tests: it can fail to answer, refuse, and fail in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from riseml.base.records import dataclass


def _allow(_: str, __: str) -> None:
    """Let a call happen."""


@dataclass(slots=True)
class MemoryTarget:
    """Objects by their keys.

    Example:
        target = MemoryTarget()
        target.before = fail_on("write", Away("the store answers 503"))
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    before: Callable[[str, str], None] = _allow  # called with the method and the key; may raise
    calls: list[tuple[str, str]] = field(default_factory=list)  # the method and the key of each call that was allowed

    def read(self, key: str, start: int, stop: int) -> bytes | None:
        """Return a range of an object."""
        self._note("read", key)
        data = self.objects.get(key)
        return None if data is None else data[start:stop]

    def write(self, key: str, size: int, pieces: Iterator[bytes]) -> None:
        """Write an object."""
        self._note("write", key)
        data = b"".join(pieces)
        if len(data) != size:
            raise ValueError(f"{key} has {len(data)} bytes, not {size}")
        self.objects[key] = data

    def copy(self, key: str, target: str) -> None:
        """Write an object that has the content of another one."""
        self._note("copy", target)
        self.objects[target] = self.objects[key]

    def list_keys(self, folder: str) -> list[str]:
        """Return the objects below a folder."""
        self._note("list", folder)
        return sorted(key for key in self.objects if key.startswith(f"{folder}/"))

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects."""
        for key in keys:
            self._note("remove", key)
            self.objects.pop(key, None)

    def _note(self, method: str, key: str) -> None:
        self.before(method, key)
        self.calls.append((method, key))
