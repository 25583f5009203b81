"""The current work of hosts on environments, in memory. It is shown to users; no decision depends on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from riseml.base.names import HostName
from riseml.executors.base import Report, WorkReport
from riseml.model import Experiment

Activity = tuple[HostName, WorkReport]
"""A host, and its progress."""


def name_data(experiment: int) -> str:
    """Return the name of the fetch of an experiment's data, used like the name of an environment."""
    return f"data of {experiment}"


class Activities:
    """The work under way, by host and environment. Several threads use it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[tuple[HostName, str], WorkReport] = {}

    @contextmanager
    def open_activity(self, host: HostName, reference: str) -> Iterator[Report]:
        """Give the receiver for the reports of one action; forget the activity at the end of the block.

        Args:
            host: where the environment is made.
            reference: of the environment.
        """

        def note(report: WorkReport) -> None:
            with self._lock:
                self._reports[host, reference] = report

        try:
            yield note
        finally:
            with self._lock:
                self._reports.pop((host, reference), None)

    def list_activities(self, experiment: Experiment) -> list[Activity]:
        """Return the current activities for the environments of an experiment, by host."""
        references = {name for image in experiment.images for name in (image.reference, image.base)}
        references.add(name_data(experiment.id))
        with self._lock:
            reports = [(host, report) for (host, reference), report in self._reports.items() if reference in references]
        return sorted(reports, key=lambda pair: pair[0])
