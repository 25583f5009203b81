"""The passes of the loop, for threads that wait for a pass or need its last observation."""

from __future__ import annotations

import threading
from datetime import datetime

from riseml.control.observation import Observation
from riseml.server.reconcile.wake import Wake


class PassCounter:
    """Counts completed passes. The loop writes, every other thread only reads and waits.

    Args:
        wake: asks the loop for a pass.
        moment: when the server started; until the first pass the server counts as active then.
    """

    def __init__(self, wake: Wake, moment: datetime) -> None:
        self._wake = wake
        self._changed = threading.Condition()
        self._completed = 0
        self.active_at = moment  # the last time that an experiment was open or the server had other work
        self.observation: Observation | None = None  # None until the first pass
        self.problem = ""  # why the last pass could not use the store, such as a full disk

    def complete_pass(self) -> None:
        """Count one pass and release the threads that wait for it."""
        with self._changed:
            self._completed += 1
            self._changed.notify_all()

    def wait_for_full_pass(self, seconds: float) -> None:
        """Return once a pass that began after this call is complete, or after about `seconds`."""
        with self._changed:
            target = self._completed + 2  # the first of them may have begun before this call
            self._wake.set()
            while self._completed < target:
                self._wake.set()
                if not self._changed.wait(seconds / 2):
                    return
