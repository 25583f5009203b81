"""The server's state as families of Prometheus' metrics. Imported at the first scrape, not when the server starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from riseml import wire
from riseml.base.names import experiment_name
from riseml.base.states import PLACED, State
from riseml.model import Experiment, Job
from riseml.server.clock import now
from riseml.server.hosts.host_set import HostSet
from riseml.server.services import Services, Watchers
from riseml.server.timings import BOUNDS, DurationCounts
from riseml.server.usage.gpu_readings import GpuScrapes

_MIB = 2**20
_WAITING = frozenset({State.CREATED, State.BUILDING, State.PENDING})


def make_exposition(services: Services, gpus: GpuScrapes) -> bytes:
    """Return all metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_ServerCollector(services, gpus))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _ServerCollector(Collector):
    """Collects the metrics for one answer."""

    def __init__(self, services: Services, gpus: GpuScrapes) -> None:
        self._services = services
        self._gpus = gpus

    def collect(self) -> Iterator[Metric]:
        services = self._services
        moment = now()
        open_ones = services.stores.experiments.load_world().experiments
        info = GaugeMetricFamily("riseml_build_info", "Always 1; the label is the version.", labels=["version"])
        info.add_metric([services.info.version], 1)
        yield info
        states = GaugeMetricFamily(
            "riseml_experiments", "Experiments by state, those that have ended included.", labels=["state"]
        )
        for state, count in services.stores.totals.count_states().items():
            states.add_metric([state.value], count)
        yield states
        yield GaugeMetricFamily(
            "riseml_store_size_bytes", "Size of the database.", value=services.stores.totals.measure_size()
        )
        yield from _list_queue(open_ones, moment)
        yield from _list_timings(services.watchers)
        yield from _list_hosts(services.hosts, open_ones)
        yield from _list_jobs(services.watchers, open_ones)
        yield from _list_gpus(self._gpus.read())


def _list_queue(experiments: tuple[Experiment, ...], moment: datetime) -> Iterator[Metric]:
    waits = [
        (moment - experiment.created_at).total_seconds()
        for experiment in experiments
        if experiment.state in _WAITING and experiment.placed_at is None
    ]
    yield GaugeMetricFamily("riseml_queue_experiments", "Experiments that have no place yet.", value=len(waits))
    oldest = max(waits, default=0.0)
    text = "How long the experiment that waits longest has waited for a place."
    yield GaugeMetricFamily("riseml_queue_oldest_wait_seconds", text, value=max(0.0, oldest))


def _list_timings(watchers: Watchers) -> Iterator[Metric]:
    timings = watchers.timings
    single = (
        ("riseml_queue_wait_seconds", "From the submission of an experiment to its place.", timings.queue_waits),
        ("riseml_loop_pass_seconds", "Passes of the control loop.", timings.passes),
        ("riseml_hosts_answer_seconds", "Until all hosts have answered a pass, or are silent.", timings.host_answers),
    )
    for name, text, counts in single:
        family = HistogramMetricFamily(name, text)
        _add_counts(family, [], counts)
        yield family
    actions = HistogramMetricFamily("riseml_host_action_seconds", "Actions on hosts, by kind.", labels=["action"])
    for kind, counts in sorted(timings.list_actions().items()):
        _add_counts(actions, [kind], counts)
    yield actions


def _add_counts(family: HistogramMetricFamily, labels: list[str], counts: DurationCounts) -> None:
    buckets, total = counts.read()
    bounds = [*(str(bound) for bound in BOUNDS), "+Inf"]
    family.add_metric(labels, buckets=list(zip(bounds, accumulate(buckets), strict=True)), sum_value=total)


def _list_hosts(hosts: HostSet, experiments: tuple[Experiment, ...]) -> Iterator[Metric]:
    names = ("up", "cpus", "cpus_reserved", "memory_bytes", "memory_reserved_bytes", "gpus", "gpus_reserved")
    texts = (
        "1 while the host answers.",
        "Cores that the host gives to jobs.",
        "Cores that jobs on the host are sure to get.",
        "Memory that the host gives to jobs.",
        "Memory that jobs on the host are sure to get.",
        "GPUs that the host gives to jobs.",
        "GPUs that jobs on the host have.",
    )
    families = [
        GaugeMetricFamily(f"riseml_host_{name}", text, labels=["host"]) for name, text in zip(names, texts, strict=True)
    ]
    last_seen = hosts.last_seen()
    for host in sorted({*hosts.names} - last_seen.keys()):
        families[0].add_metric([host], 0.0)  # it has never answered: what it has is not known
    for host, observed in sorted(last_seen.items()):
        reservations = [job.resources for _, job in _list_placed(experiments) if job.host == host]
        capacity = observed.capacity
        values = (
            float(observed.silent_since is None),
            capacity.cpus,
            sum(resources.cpus for resources in reservations),
            capacity.mem * _MIB,
            sum(resources.mem for resources in reservations) * _MIB,
            len(capacity.gpus),
            sum(resources.gpus for resources in reservations),
        )
        for family, value in zip(families, values, strict=True):
            family.add_metric([host], value)
    yield from families


def _list_jobs(watchers: Watchers, experiments: tuple[Experiment, ...]) -> Iterator[Metric]:
    labels = ["experiment", "job", "host", "project"]
    cpu = GaugeMetricFamily("riseml_job_cpu_cores", "Cores that the job uses.", labels=labels)
    memory = GaugeMetricFamily("riseml_job_memory_bytes", "Memory that the job uses.", labels=labels)
    gpu = GaugeMetricFamily("riseml_job_gpu_ratio", "How busy the GPUs of the job are, from 0 to 1.", labels=labels)
    gpu_memory = GaugeMetricFamily("riseml_job_gpu_memory_bytes", "Memory in use on its GPUs.", labels=labels)
    for experiment, job in _list_placed(experiments):
        sample = watchers.samples.find_last(experiment.key_of(job))
        if sample is None:
            continue
        owner = [experiment_name(experiment.number, experiment.sub), job.name, job.host or "", experiment.project]
        cpu.add_metric(owner, sample.cpu / 100)
        memory.add_metric(owner, sample.mem_used)
        if sample.gpu is not None:
            gpu.add_metric(owner, sample.gpu / 100)
        if sample.gpu_mem_used is not None:
            gpu_memory.add_metric(owner, sample.gpu_mem_used)
    yield from (cpu, memory, gpu, gpu_memory)


def _list_gpus(gpus: Sequence[wire.GpuView]) -> Iterator[Metric]:
    """Yield the readings of GPUs; an amount that the driver does not report has no sample."""
    amounts: tuple[tuple[str, str, Callable[[wire.GpuView], float | None]], ...] = (
        ("busy_ratio", "Part of the time in which the GPU works, from 0 to 1.", lambda gpu: _share(gpu["percent"])),
        ("memory_used_bytes", "Memory in use on the GPU.", lambda gpu: gpu["mem_used"]),
        ("temperature_celsius", "Temperature of the GPU.", lambda gpu: gpu["temperature"]),
        ("power_watts", "Power that the GPU takes.", lambda gpu: gpu["power"]),
        ("power_limit_watts", "Power that the GPU may take.", lambda gpu: gpu["power_limit"]),
    )
    for name, text, amount in amounts:
        family = GaugeMetricFamily(f"riseml_gpu_{name}", text, labels=["host", "gpu", "name"])
        for gpu in gpus:
            value = amount(gpu)
            if value is not None:
                family.add_metric([gpu["host"], gpu["id"], gpu["name"]], value)
        yield family


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _list_placed(experiments: tuple[Experiment, ...]) -> Iterator[tuple[Experiment, Job]]:
    for experiment in experiments:
        for job in experiment.gang:
            if job.state in PLACED and job.host is not None:
                yield experiment, job
