"""Pools and experiments for tests of placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty, Network, State
from riseml.control.explain import explain_experiment
from riseml.control.observation import Observation
from riseml.control.placement.place import place_gangs
from riseml.model import Capacity, Experiment, Gpu, HostObservation, Job, World
from riseml.spec.config.types import Resources
from riseml.wire.explanations import ExplanationView
from tests.unit.control.simulation import START, make_experiment, make_plan

H1, H2, H3 = HostName("h1"), HostName("h2"), HostName("h3")
ONE = Resources(cpus=1, mem=64)
GPU = Resources(cpus=1, mem=64, gpus=1)
ONE_JOB = {"train": ONE}
GANG = {"master": ONE, "worker.1": ONE, "worker.2": ONE, "ps.1": ONE}
GANG_NEEDS = {JobName(name): need for name, need in GANG.items()}


def site(cpus: float, *gpus: str, **fields: object) -> HostObservation:
    """A host of the swarm."""
    usual = HostObservation(Capacity(cpus, 8192, gpus), swarm="s", manager=True)
    return replace(usual, **fields)  # type: ignore[arg-type]  # the fields, by name


def ready(identity: int, needs: Mapping[str, Resources], **fields: object) -> Experiment:
    """An experiment whose environment is there."""
    experiment = make_experiment(identity, make_plan(*needs, resources=needs), **fields)
    jobs = (replace(job, state=State.FINISHED) if job.part is JobDuty.PREPARES else job for job in experiment.jobs)
    return replace(experiment, jobs=tuple(jobs))


def place_all(seen: Observation, *experiments: Experiment) -> dict[int, Experiment]:
    """What one call makes of them."""
    return {experiment.id: experiment for experiment in place_gangs(World(experiments), seen).experiments}


def look(network: Network = Network.OVERLAY, /, **hosts: HostObservation) -> Observation:
    """These hosts, as a pass sees them."""
    return Observation(START, {HostName(name): host for name, host in hosts.items()}, network=network)


def gang_of(experiment: Experiment) -> dict[str, Job]:
    """Its jobs by name, without the build."""
    return {job.name: job for job in experiment.jobs if job.part is not JobDuty.PREPARES}


def hosts_of(experiment: Experiment) -> dict[str, str | None]:
    """Where each job is."""
    return {name: job.host for name, job in gang_of(experiment).items()}


A100 = Gpu("0", "GPU-a", "NVIDIA A100-SXM4-40GB", 40960)
TESLA_T4 = Gpu("0", "GPU-b", "Tesla T4", 15360)


def gpu_site(*gpus: Gpu) -> HostObservation:
    """Return a host with these GPUs."""
    ids = [str(index) for index in range(len(gpus))]
    return site(8, *ids, devices=dict(zip(ids, gpus, strict=True)))


def tell(seen: Observation, *experiments: Experiment) -> ExplanationView:
    """Return the explanation of the last experiment, after one placement pass over all of them."""
    world = place_gangs(World(experiments), seen)
    return explain_experiment(world, seen, world.experiments[-1])


def on_h1(need: Resources, *gpus: str) -> Job:
    """A job that has got its place."""
    return Job(JobName("train"), JobDuty.DECIDES, need, State.STARTING, host=H1, gpus=gpus)
