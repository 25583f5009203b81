"""The progress of a pull or a push as one number: the sum over the layers in the engine's answer. No I/O.

The engine reports each layer separately, and its size only once its transfer begins. So the total is known only when
every layer has begun, is done, or existed before.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from riseml.base.records import dataclass
from riseml.executors.base import Work, WorkReport

_KNOWN = frozenset({"Pulling fs layer", "Preparing", "Waiting"})
_MOVING = frozenset({"Downloading", "Pushing"})
_MOVED = frozenset({"Verifying Checksum", "Download complete", "Extracting", "Pull complete", "Pushed"})
_THERE = frozenset({"Already exists", "Layer already exists"})


@dataclass(slots=True)
class _Layer:
    """One layer, in bytes."""

    transferred: int = 0
    size: int | None = None  # None: not known yet


@dataclass(slots=True)
class LayerProgress:
    """Adds up the lines of one answer.

    Example:
        >>> fold = LayerFold(Work.PULL, "python:3.11")
        >>> fold.add_line({"id": "a1", "status": "Downloading", "progressDetail": {"current": 5, "total": 9}})
        WorkReport(work=<Work.PULL: 'pull'>, subject='python:3.11', progress=5, total=9)
    """

    work: Work
    image: str
    _layers: dict[str, _Layer] = field(default_factory=dict)  # by id

    def add_line(self, line: dict[str, Any]) -> WorkReport | None:
        """Return how far the transfer is after one more line; None for a line that says nothing about it."""
        status = str(line.get("status", ""))
        name = str(line.get("id", ""))
        if not name or status not in _KNOWN | _MOVING | _MOVED | _THERE:
            return None
        layer = self._layers.setdefault(name, _Layer())
        detail = line.get("progressDetail") or {}
        if status in _MOVING and detail:
            layer.transferred = int(detail.get("current") or 0)
            layer.size = int(detail["total"]) if detail.get("total") else layer.size
        elif status in _THERE or (status in _MOVED and layer.size is None):
            # the layer existed before, or was so small that the engine never reported its size
            layer.transferred = 0
            layer.size = 0
        elif status in _MOVED:
            layer.transferred = layer.size or 0
        sizes = [layer.size for layer in self._layers.values()]
        known_sizes = [size for size in sizes if size is not None]
        total = sum(known_sizes) if len(known_sizes) == len(sizes) else None
        return WorkReport(self.work, self.image, sum(layer.transferred for layer in self._layers.values()), total)
