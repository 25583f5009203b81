"""Wake the loop: an event that any thread sets, and a wait with a deadline."""

from __future__ import annotations

import threading


class Wake:
    """An event that any thread sets, and only the loop waits for."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for a pass."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Return when a thread asked for a pass, or after `seconds`. Later requests count for the next wait."""
        self._event.wait(seconds)
        self._event.clear()


class JointWake:
    """Wakes several loops at the same time."""

    def __init__(self, *wakes: Wake) -> None:
        self._wakes = wakes

    def set(self) -> None:
        """Ask each of them for a pass."""
        for wake in self._wakes:
            wake.set()
