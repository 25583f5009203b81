"""What the jobs of `riseml system test` measured: values that compare, what is wrong, and what is slow. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from riseml.base.records import dataclass
from riseml.job_programs.host_test import PREFIX

Unit = Literal["MB/s", "GFLOP/s", "GB/s", "us", "cores", "MiB"]
"""Of a measured value: us are microseconds."""

_SLOW = 0.5  # share of what its peers reach


@dataclass(frozen=True, slots=True)
class HostMeasure:
    """One measured value."""

    place: str  # the host, or both hosts of a connection: `gpu1 - gpu2`
    name: str  # `cores`, `output write`, `latency`, ...
    value: float
    unit: Unit
    gpu: str = ""  # UUID; empty: it is not of one GPU
    model: str = ""  # model of that GPU: only equal ones compare

    @property
    def less_is_better(self) -> bool:
        """True for a time."""
        return self.unit == "us"

    def describe(self) -> str:
        """Return the value for people: `output write 310 MB/s`."""
        name = f"GPU {self.gpu} {self.name}" if self.gpu else self.name
        return f"{name} {_format_amount(self.value, self.unit)}"


def _format_amount(value: float, unit: Unit) -> str:
    return f"{value:,.{2 if unit == 'cores' else 0}f} {unit}"


def read_report(lines: Iterable[str]) -> Mapping[str, Any] | None:
    """Return the report that a job printed; None: it printed none."""
    for line in lines:
        if line.startswith(PREFIX):
            try:
                report = json.loads(line[len(PREFIX) :])
            except ValueError:
                return None
            return report if isinstance(report, dict) else None
    return None


def list_host_measures(host: str, report: Mapping[str, Any]) -> Iterator[HostMeasure]:
    """Yield what a job measured of its host."""
    yield HostMeasure(host, "cores", report["cores"], "MB/s")
    yield HostMeasure(host, "memory", report["memory"], "MB/s")
    for folder in ("disk", "output"):
        for direction in ("write", "read"):
            yield HostMeasure(host, f"{folder} {direction}", report[folder][direction], "MB/s")
    for gpu in report["gpus"]:
        if "gflops" in gpu:
            yield HostMeasure(host, "product", gpu["gflops"], "GFLOP/s", gpu["uuid"], gpu["model"])
        if "memory_mb_s" in gpu:
            yield HostMeasure(host, "memory", gpu["memory_mb_s"], "MB/s", gpu["uuid"], gpu["model"])
    if report["allreduce"] is not None:
        models = "+".join(sorted(gpu["model"] for gpu in report["gpus"]))
        yield HostMeasure(host, "all-reduce", report["allreduce"], "GB/s", model=models)
    if (stress := report["stress"]) is not None:
        yield HostMeasure(host, "stress", stress["reached"], "cores")
        yield HostMeasure(host, "stress memory", stress["held"], "MiB")


def list_link_measures(hosts: tuple[str, str], report: Mapping[str, Any]) -> Iterator[HostMeasure]:
    """Yield what a job measured of the network from the first host to the second one."""
    place = " - ".join(hosts)
    yield HostMeasure(place, "latency", report["latency"], "us")
    yield HostMeasure(place, "sent", report["sent"], "MB/s")
    yield HostMeasure(place, "received", report["received"], "MB/s")


def list_faults(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong on a host, whatever the others reach."""
    if report["memory_wrong"]:
        yield f"{report['memory_wrong']} MiB of memory did not keep what was written"
    stress = report["stress"] or {"wrong": 0, "ended": []}
    if stress["wrong"]:
        yield f"{stress['wrong']} MiB of memory did not keep what was written under stress"
    yield from (f"a process of the stress ended by itself: {end}" for end in dict.fromkeys(stress["ended"]))
    for folder, name in (("disk", "its disk"), ("output", "OUTPUT_DIR")):
        if not report[folder]["right"]:
            yield f"{name} did not give back what was written"
    for gpu in report["gpus"]:
        yield from (f"GPU {gpu['index']} ({gpu['model']}, {gpu['uuid']}): {error}" for error in gpu["errors"])


def list_notes(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a job could not test, and why, and how long it stressed its host."""
    if (stress := report["stress"]) is not None:
        amounts = f"{stress['cores']:g} cores and {stress['mib']} MiB"
        yield f"the stress of {amounts} took {stress['rounds']} times {stress['seconds']:g} s"
    yield from filter(None, (report["no_gpus"], report["no_allreduce"]))


def describe_gpu(gpu: Mapping[str, Any]) -> str:
    """Return what a job saw of one GPU: `GPU 0 NVIDIA H200 (GPU-5f...), driver 580.1, 141 GiB, 610 W, 54 °C`."""
    parts = [f"GPU {gpu['index']} {gpu['model']} ({gpu['uuid']})"]
    if "driver" in gpu:
        parts.append(f"driver {gpu['driver']}")
    if "memory_mib" in gpu:
        parts.append(f"{gpu['memory_mib'] / 1024:,.0f} GiB written and read")
    if "watts" in gpu:
        parts.append(f"{gpu['watts']:,.0f} W")
    if "celsius" in gpu:
        parts.append(f"{gpu['celsius']} °C")
    return ", ".join(parts)


def find_slow(measures: Sequence[HostMeasure]) -> dict[str, list[str]]:
    """Return what is worse than half of what its peers reach, by the place.

    The peers of a value are the same values of other hosts, and of other GPUs of the same model. Their median counts.
    """
    slow: dict[str, list[str]] = {}
    for measure in measures:
        peers = [
            other.value
            for other in measures
            if (other.name, other.unit, other.model) == (measure.name, measure.unit, measure.model)
            and (other.place, other.gpu) != (measure.place, measure.gpu)
        ]
        if not peers:
            continue
        usual = statistics.median(peers)
        is_slow = measure.value * _SLOW > usual if measure.less_is_better else measure.value < usual * _SLOW
        if is_slow:
            slow.setdefault(measure.place, []).append(
                f"{measure.describe()}, and its peers reach {_format_amount(usual, measure.unit)}"
            )
    return slow
