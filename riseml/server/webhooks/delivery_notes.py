"""Write the results of deliveries into the logs of their experiments, as lines of `4.webhook`."""

from __future__ import annotations

import logging
from collections.abc import Callable

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.server.clock import stamp
from riseml.store.logs.log_store import LogStore

NOTES = JobName("webhook")
"""The name of these lines in the log; there is no such job."""

_ATTEMPT = 0  # no job has it, so that no other thread writes lines under this name
_ENGINE = 3  # the stream of lines that no job has printed

log = logging.getLogger(__name__)


class DeliveryNotes:
    """Adds lines to logs; one thread uses it.

    Args:
        logs: the logs of experiments.
        publish: tells the readers of an experiment's log that it has grown.
    """

    def __init__(self, logs: LogStore, publish: Callable[[int], None]) -> None:
        self._logs = logs
        self._publish = publish

    def note(self, experiment: int, text: str) -> None:
        """Add a line. An error does not delay the delivery: the server's log has the line, too."""
        try:
            self._logs.append_frames(
                JobKey(experiment, NOTES, _ATTEMPT), [Frame(stamp(), _ENGINE, f"{text}\n".encode())]
            )
        except (OSError, ValueError) as error:  # it cannot be written, or is damaged
            log.warning("the log of an experiment has no line about a webhook: %s", error)
            return
        self._publish(experiment)
