"""The members that a search adds to a set while a stream of its log is open."""

from __future__ import annotations

from dataclasses import dataclass

from riseml.store.searches import SearchStore


@dataclass(frozen=True, slots=True)
class SetGrowth:
    """Knows the members of one set, and whether further ones may follow."""

    searches: SearchStore
    set_id: int

    def goes_on(self) -> bool:
        """Return True while a search may make further members. Ask before `list_members`."""
        return self.searches.goes_on(self.set_id)

    def list_members(self) -> tuple[int, ...]:
        """Return the ids of all members, in the order of their numbers."""
        return self.searches.list_members(self.set_id)
