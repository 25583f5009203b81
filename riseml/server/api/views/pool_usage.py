"""The use of each host by all of its jobs, as means of equal steps. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field

from riseml import wire
from riseml.base.records import dataclass
from riseml.model import Job
from riseml.store.samples.sample_rows import AMOUNTS, SampleRow, Span, resample_rows

_CPU, _MEMORY, _GPU = (AMOUNTS.index(name) for name in ("cpu", "mem_used", "gpu"))
_PER_CENT = 100.0


@dataclass(slots=True)
class _Totals:
    """The sums of one host, one place for each step."""

    cpu: list[float]
    mem_used: list[float]
    gpu: list[float]
    cpus_held: list[float]
    gpus_held: list[int]


@dataclass(slots=True)
class CpuUsageSum:
    """Adds up what jobs have used.

    Args:
        span: the time that is shown.
        step: seconds of each mean.
    """

    span: Span
    step: int
    _hosts: dict[str, _Totals] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The beginning of the first step."""
        return self.span.since - self.span.since % self.step

    @property
    def moments(self) -> list[int]:
        """The beginning of each step."""
        return list(range(self.first, self.span.until, self.step))

    def add_job(self, job: Job, rows: Iterable[SampleRow]) -> None:
        """Add a job to the host that it has; the rows are means of minutes in the order of time.

        A job counts with its guaranteed resources in every minute for which it has a row, also when it ran for only a
        part of the minute.
        """
        if job.host is None:
            return
        totals = self._hosts.get(job.host) or self._begin_totals(job.host)
        minutes = self.step / 60
        counts: dict[int, int] = {}
        span_rows = [row for row in rows if self.span.holds(row.at)]
        for row in span_rows:
            place = (row.at - self.first) // self.step
            counts[place] = counts.get(place, 0) + 1
        for row in resample_rows(span_rows, self.first, self.step):
            place = (row.at - self.first) // self.step
            share = min(1.0, counts[place] / minutes)  # the part of the step in which the job was sampled
            totals.cpu[place] += share * _read_amount(row, _CPU) / _PER_CENT
            totals.mem_used[place] += share * _read_amount(row, _MEMORY)
            totals.gpu[place] += share * _read_amount(row, _GPU) / _PER_CENT * job.resources.gpus
            totals.cpus_held[place] += share * job.resources.cpus
            totals.gpus_held[place] += job.resources.gpus

    def show(self, capacities: Mapping[str, wire.HostView]) -> list[wire.HostUsage]:
        """Return the hosts of the pool in their order, and then those that have left it."""
        names = [*capacities, *sorted(self._hosts.keys() - capacities.keys())]
        return [self._show_host(name, capacities.get(name)) for name in names]

    def _begin_totals(self, host: str) -> _Totals:
        count = len(self.moments)
        none = [0.0] * count
        self._hosts[host] = _Totals(list(none), list(none), list(none), list(none), [0] * count)
        return self._hosts[host]

    def _show_host(self, name: str, host: wire.HostView | None) -> wire.HostUsage:
        totals = self._hosts.get(name) or self._begin_totals(name)
        is_known = host is not None and host["cpus"] > 0
        return {
            "name": name,
            "cpus": host["cpus"] if host is not None and is_known else None,
            "mem_mib": host["mem_mib"] if host is not None and is_known else None,
            "gpus": host["gpus"] if host is not None and is_known else None,
            "cpu": [round(value, 3) for value in totals.cpu],
            "mem_used": [round(value) for value in totals.mem_used],
            "gpu": [round(value, 3) for value in totals.gpu],
            "cpus_held": [round(value, 3) for value in totals.cpus_held],
            "gpus_held": totals.gpus_held,
        }


def _read_amount(row: SampleRow, place: int) -> float:
    value = row.amounts[place]
    return 0.0 if math.isnan(value) else value
