"""The words by which the states of experiments are shown and chosen. Standard library only."""

from __future__ import annotations


def name_state(state: str, reason: str) -> str:
    """Return the state of an experiment for tables; a trial that its search stopped early did not finish by itself.

    Example:
        >>> name_state("FINISHED", "STOPPED_EARLY")
        'STOPPED_EARLY'
    """
    return reason if (state, reason) == ("FINISHED", "STOPPED_EARLY") else state
