"""Experiments on hosts that never fail, from the first start to the last end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from riseml.base.states import PLACED, Network, State
from riseml.control.observation import Observation
from riseml.control.placement.place import place_gangs
from riseml.model import Experiment, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import look, site
from tests.unit.control.simulation import START


@dataclass
class Day:
    """Experiments with the length of their runs, on hosts that never fail."""

    seen: Observation
    lengths: dict[int, float]

    def play(self, world: World, until: int | None = None) -> dict[int, float]:
        """Return when each experiment got its place; stops once `until` has its place, or when nothing more happens."""
        begun: dict[int, float] = {}
        now = 0.0
        while True:
            world = place_gangs(world, replace(self.seen, now=START + timedelta(seconds=now)))
            for one in world.experiments:
                if one.placed_at is not None:
                    begun.setdefault(one.id, now)
            ends = sorted(
                begun[one.id] + self.lengths[one.id] for one in world.experiments if one.id in begun and _goes(one)
            )
            if not ends or (until is not None and until in begun):
                return begun
            now = ends[0]
            world = World(
                tuple(
                    _end(one) if _goes(one) and one.id in begun and begun[one.id] + self.lengths[one.id] <= now else one
                    for one in world.experiments
                )
            )


def _goes(experiment: Experiment) -> bool:
    return experiment.placed_at is not None and experiment.state is not State.FINISHED


def _end(experiment: Experiment) -> Experiment:
    jobs = tuple(replace(job, state=State.FINISHED) if job.state in PLACED else job for job in experiment.jobs)
    return replace(experiment, jobs=jobs, state=State.FINISHED)


def draw_pool(random: Random) -> Observation:
    """One to four hosts, some with devices, some connected."""
    hosts = {
        f"h{n}": site(
            random.choice([2, 4, 8]),
            *(f"g{device}" for device in range(random.choice([0, 0, 2, 4]))),
            labels={"disk": random.choice(["fast", "slow"])},
            swarm=random.choice(["s", "s", ""]),
        )
        for n in range(random.randint(1, 4))
    }
    return look(random.choice([Network.OVERLAY, Network.BRIDGE]), **hosts)


def draw_needs(random: Random) -> dict[str, Resources]:
    labels = random.choice([(), (), (), (("disk", "fast"),)])
    need = Resources(
        random.choice([0.5, 1, 2, 3, 4]), random.choice([64, 2048, 4096]), random.choice([0, 0, 1, 2]), labels
    )
    names = random.choice([("train",), ("train",), ("master", "worker.1"), ("master", "worker.1", "worker.2", "ps.1")])
    return {name: replace(need, gpus=0) if name == "ps.1" else need for name in names}
