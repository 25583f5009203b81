"""States of projects whose list the server has and whose contents have not all arrived."""

from __future__ import annotations

from riseml.base.records import dataclass
from riseml.files.archives.pieces import RECORD

_MOST = 128 << 20  # bytes of all lists


@dataclass(frozen=True, slots=True)
class PendingState:
    """A manifest whose contents are incomplete."""

    data: bytes
    sizes: dict[bytes, int]  # of the contents, each once

    @property
    def sent_size(self) -> int:
        """Bytes of the contents as they are sent."""
        return sum(self.sizes.values()) + RECORD.size * len(self.sizes)


class PendingStates:
    """The incomplete states of one server, by digest; the oldest ones are forgotten when there are too many."""

    def __init__(self) -> None:
        self._states: dict[str, PendingState] = {}

    def note_state(self, digest: str, state: PendingState) -> None:
        """Remember a state until its contents have arrived."""
        self._states.pop(digest, None)
        self._states[digest] = state
        while len(self._states) > 1 and sum(len(pending.data) for pending in self._states.values()) > _MOST:
            del self._states[next(iter(self._states))]

    def find_state(self, digest: str) -> PendingState | None:
        """Return a state; None: the server does not know it, or not any more."""
        return self._states.get(digest)

    def forget_state(self, digest: str) -> None:
        """Forget a state, whose contents are complete."""
        self._states.pop(digest, None)

    def list_contents(self) -> set[bytes]:
        """Return the contents that the states name."""
        return {content for state in self._states.values() for content in state.sizes}
