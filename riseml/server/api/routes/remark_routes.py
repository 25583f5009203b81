"""The route of remarks: which jobs of an experiment slow the others down.

A rate needs two samples. The server remembers the samples of earlier requests, as `riseml monitor` does in its own
process. It measures no job more often for this: it uses the samples that it keeps anyway.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from fastapi import APIRouter

from riseml import wire
from riseml.base.names import parse_id
from riseml.results.stragglers import Remark, find_stragglers
from riseml.results.trends import Trends
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.named_experiments import find_single_experiment
from riseml.server.api.views.record_views import show_sample
from riseml.server.services import Services

_MOST_WATCHED = 32  # experiments whose samples are remembered


def add_remark_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/remarks."""
    trends = SeenTrends()

    @router.get("/experiments/{name}/remarks")
    def read_remarks(name: Name) -> wire.Remarks:
        experiment = find_single_experiment(parse_id(name), services)
        lines = services.pump.count_lines()
        keys = [(job, experiment.key_of(job)) for job in experiment.gang]
        samples = [show_sample(experiment, job, services.samples.find_last(key), lines.get(key)) for job, key in keys]
        remarks = trends.find_remarks(experiment.id, samples)
        return {"remarks": [{"job": remark.job, "text": remark.text, "kind": remark.kind.value} for remark in remarks]}


class SeenTrends:
    """The samples of earlier requests, by experiment. Several threads use it.

    Args:
        clock: seconds; never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._trends: OrderedDict[int, Trends] = OrderedDict()  # by experiment, the most recently requested one last

    def find_remarks(self, experiment: int, samples: Sequence[wire.SampleView]) -> list[Remark]:
        """Remember samples of an experiment's jobs, and return the remarks that follow from all remembered samples."""
        with self._lock:
            trends = self._trends.pop(experiment, None) or Trends()
            self._trends[experiment] = trends
            while len(self._trends) > _MOST_WATCHED:
                self._trends.popitem(last=False)
            trends.add_samples(samples, self._clock())
            return find_stragglers(samples, trends)
