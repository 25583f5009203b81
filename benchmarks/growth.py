"""How the time of `decide`, of placement and of `load_world` grows from 10 to 10,000 experiments."""

from __future__ import annotations

import gc
import json
import math
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.common import median
from riseml.base.names import HostName
from riseml.base.states import JobDuty, Reason, State
from riseml.control.decide import decide
from riseml.control.observation import Observation
from riseml.model import (
    Capacity,
    ContainerObservation,
    Experiment,
    HostObservation,
    ImageObservation,
    Job,
    JobKey,
    Owner,
    Plan,
    World,
)
from riseml.planning.grid import grid_points
from riseml.planning.image import Manifest
from riseml.planning.plan import first_jobs, make_plan
from riseml.spec.config.loader import load_config
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments

SIZES = (10, 100, 1000, 10_000)
_NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
_OWNER = Owner("bench", 1000, 1000)
_HOSTS = 1000  # for `decide`
_FEW = 100  # hosts, for placing
_PATIENCE = 3.0  # seconds; after a slower call the larger sizes of a case are left out
_GANG = {"worker": 3, "ps": 1}
_CONFIG = json.dumps(
    {
        "project": "bench",
        "train": {
            "framework": "tensorflow",
            "tensorflow": {"version": "2.21.0", "distributed": _GANG},
            "resources": {"cpus": 0.1, "mem": "64MiB"},
            "run": "python train.py",
        },
    }
)

Case = Callable[[], object]


def measure(folder: Path, sizes: tuple[int, ...]) -> dict[str, dict[int, float]]:
    """Return the seconds of one call, by case and by number of experiments."""
    cases: Mapping[str, Callable[[int], Case]] = {
        "decide, all running": _decide_running,
        "place one more": lambda size: _place(size, 1),
        "place all": lambda size: _place(size, size),
        "load_world, by a server that starts": lambda size: _load_world(folder, size),
        "load_world, nothing new": lambda size: _load_again(folder, size),
    }
    times_by_case: dict[str, dict[int, float]] = {}
    for name, make in cases.items():
        times = times_by_case.setdefault(name, {})
        for size in sizes:
            if not times or max(times.values()) < _PATIENCE:
                times[size] = _time(make(size))
    return times_by_case


def compute_exponent(times: Mapping[int, float]) -> float:
    """Return the exponent of the growth between the two largest sizes.

    1 is linear growth. n log n has 1.12 between 1,000 and 10,000.
    """
    (small, before), (large, after) = sorted(times.items())[-2:]
    return math.log(after / before) / math.log(large / small)


def compute_allowed_exponent(times: Mapping[int, float]) -> float:
    """Return the exponent of n log n between the two largest sizes."""
    (small, _), (large, _) = sorted(times.items())[-2:]
    return 1 + math.log(math.log(large) / math.log(small)) / math.log(large / small)


def _time(case: Case) -> float:
    """Return the median seconds of as many calls as fit into half a second: 1 to 20."""
    values: list[float] = []
    while sum(values) < 0.5 and len(values) < 20:
        begun = time.perf_counter()
        case()
        values.append(time.perf_counter() - begun)
    return median(values)


def _plan() -> Plan:
    spec = load_config(_CONFIG)
    return make_plan(spec, grid_points(spec.train)[0], Manifest())


def _experiment(identity: int, plan: Plan, hosts: int = _HOSTS) -> Experiment:
    """Return an experiment that waits for placement: its environment is ready."""
    jobs = tuple(
        replace(job, state=State.FINISHED, exit_code=0, host=_host(identity, hosts))
        if job.part is JobDuty.PREPARES
        else job
        for job in first_jobs(plan)
    )
    return Experiment(identity, _OWNER, identity, "bench", plan, jobs, _NOW)


def _running(experiment: Experiment, hosts: int = _HOSTS) -> Experiment:
    at = experiment.id * 64
    jobs = tuple(
        job if job.part is JobDuty.PREPARES else _run(job, _host(experiment.id, hosts)) for job in experiment.jobs
    )
    subnet = f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}/26"
    begun = replace(experiment, jobs=jobs, subnet=subnet, placed_at=_NOW, started_at=_NOW)
    return replace(begun, state=State.RUNNING, reason=Reason.RUNNING)


def _run(job: Job, host: HostName) -> Job:
    return replace(job, state=State.RUNNING, reason=Reason.RUNNING, host=host, started_at=_NOW, address="10.0.0.2")


def _host(identity: int, hosts: int = _HOSTS) -> HostName:
    return HostName(f"host-{identity % hosts:04}")


def _observation(world: World, most: int = _HOSTS) -> Observation:
    """Return an observation with as many hosts as experiments, at most `most`, and everything that runs on them."""
    containers: dict[HostName, dict[JobKey, ContainerObservation]] = {}
    networks: dict[HostName, dict[int, str]] = {}
    for experiment in world.experiments:
        for job in experiment.jobs:
            if job.part is not JobDuty.PREPARES and job.host is not None:
                key = JobKey(experiment.id, job.name, 1)
                containers.setdefault(job.host, {})[key] = ContainerObservation(
                    key, str(key), started=True, started_at=_NOW
                )
                networks.setdefault(job.host, {})[experiment.id] = experiment.subnet or ""
    names = {_host(experiment.id, most) for experiment in world.experiments}
    capacity = Capacity(1000.0, 10**6)
    hosts = {
        name: HostObservation(
            capacity,
            containers=containers.get(name, {}),
            networks=networks.get(name, {}),
            images={"tensorflow/tensorflow:2.21.0": ImageObservation(present=True)},
        )
        for name in sorted(names)
    }
    return Observation(_NOW, hosts, lost_after=300.0, subnets="10.0.0.0/8")


def _decide_running(size: int) -> Case:
    plan = _plan()
    world = World(tuple(_running(_experiment(identity, plan)) for identity in range(1, size + 1)))
    observation = _observation(world)
    return lambda: decide(world, observation)


def _place(size: int, waiting: int) -> Case:
    """Return a call of `decide` with `size` experiments, of which the last `waiting` wait for placement."""
    plan = _plan()
    whole = [_experiment(identity, plan, _FEW) for identity in range(1, size + 1)]
    world = World(
        tuple(experiment if experiment.id > size - waiting else _running(experiment, _FEW) for experiment in whole)
    )
    observation = _observation(world, _FEW)
    return lambda: decide(world, observation)


def _load_world(folder: Path, size: int) -> Case:
    """Return a call that loads the world as a starting server does: with the garbage collector off."""

    def load() -> None:
        gc.disable()
        try:
            ExperimentStore(database).load_world()
        finally:
            gc.enable()

    path = folder / f"world-{size}.db"
    database = Database(f"sqlite:///{path}")
    plan = _plan()
    ExperimentStore(database).add_experiments(
        NewExperiments(_OWNER, "bench", _CONFIG, "", ((plan, first_jobs(plan)),)), _NOW
    )
    copy_first_experiment(path, size - 1)
    return load


def _load_again(folder: Path, size: int) -> Case:
    """Return a call that loads the world again, as each pass of the loop does, from the store of `_load_world`."""
    experiments = ExperimentStore(Database(f"sqlite:///{folder}/world-{size}.db"))
    experiments.load_world()
    return experiments.load_world


def copy_first_experiment(path: Path, times: int) -> None:
    """Add copies of the store's first experiment, with its jobs, events and metrics.

    Args:
        path: of an SQLite store.
        times: number of copies.
    """
    with sqlite3.connect(path) as connection:
        first = connection.execute("SELECT min(id) FROM experiments").fetchone()[0]
        start = connection.execute("SELECT max(max(id), max(number)) FROM experiments").fetchone()[0]
        for table, changed in (
            ("experiments", {"id": "?", "number": "?", '"key"': "NULL"}),
            ("jobs", {"experiment_id": "?"}),
            ("events", {"id": "NULL", "experiment_id": "?"}),
            ("metric_tallies", {"experiment_id": "?"}),
        ):
            columns = [f'"{row[1]}"' for row in connection.execute(f"PRAGMA table_info({table})")]
            changed = {(name if name.startswith('"') else f'"{name}"'): value for name, value in changed.items()}
            values = [changed.get(column, column) for column in columns]
            key = "id" if table == "experiments" else "experiment_id"
            query = f"INSERT INTO {table} SELECT {', '.join(values)} FROM {table} WHERE {key} = {first}"
            marks = values.count("?")
            connection.executemany(query, [(start + turn,) * marks for turn in range(1, times + 1)])
    connection.close()
