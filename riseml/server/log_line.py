"""One line of the server's log, and the facts in it as fields."""

from __future__ import annotations

import logging

from riseml.base.names import HostName, JobName
from riseml.base.records import dataclass

FACTS = "riseml_facts"
"""Attribute of a log record that holds the facts of its line."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, and its facts for the JSON format."""

    text: str
    experiment: str | None = None  # canonical ID: `4`, `144.1`
    job: JobName | None = None
    attempt: int | None = None  # attempt of the job; 1 is the first
    host: HostName | None = None
    state: str | None = None  # state of the experiment or the job
    reason: str | None = None
    seconds: float | None = None  # how long an action took

    def facts(self) -> dict[str, str | int | float]:
        """Return every fact that is known, without the text."""
        facts = {
            "experiment": self.experiment,
            "job": self.job,
            "attempt": self.attempt,
            "host": self.host,
            "state": self.state,
            "reason": self.reason,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
        }
        return {name: value for name, value in facts.items() if value is not None}


def write_line(log: logging.Logger, line: LogLine, level: int = logging.INFO) -> None:
    """Log one line with its facts."""
    log.log(level, "%s", line.text, extra={FACTS: line.facts()})
