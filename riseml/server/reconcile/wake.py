"""What wakes the loop: an event that anybody may set, and a wait that has a deadline."""

from __future__ import annotations

import threading


class Wake:
    """Set from any thread; waited for by the loop alone."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for a pass."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Return when somebody asked, or after `seconds`; what is asked from now on counts for the next wait."""
        self._event.wait(seconds)
        self._event.clear()
