"""The clients of each companion, in memory: a companion ends some time after its last client has disconnected.

A new server does not know earlier clients: it treats every companion as used at the moment when it first sees it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from datetime import datetime, timedelta

from riseml.base.records import dataclass


@dataclass(slots=True)
class _Use:
    clients: int  # streams that are open now
    last: float  # when the last of them ended, on the clock of `Attendance`


class Attendance:
    """The streams that clients have open, by the id of the experiment. Several threads use it at the same time.

    Args:
        clock: seconds; never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: dict[int, _Use] = {}

    @contextmanager
    def attend(self, experiment: int) -> Iterator[None]:
        """Count a client of an experiment until the block ends."""
        with self._lock:
            self._uses.setdefault(experiment, _Use(0, self._clock())).clients += 1
        try:
            yield
        finally:
            with self._lock:
                use = self._uses[experiment]
                use.clients -= 1
                use.last = self._clock()

    def read_last_uses(self, experiments: Set[int], moment: datetime) -> dict[int, datetime]:
        """Return when each of these experiments was last used; `moment` is now. Forget all others."""
        with self._lock:
            tick = self._clock()
            self._uses = {
                experiment: use for experiment, use in self._uses.items() if use.clients or experiment in experiments
            }
            for experiment in experiments:
                use = self._uses.setdefault(experiment, _Use(0, tick))
                if use.clients:
                    use.last = tick
            return {
                experiment: moment - timedelta(seconds=tick - self._uses[experiment].last) for experiment in experiments
            }
