"""The same random histories on clusters, which have queues of their own and start gangs as one thing.

Every rule of `History` happens here, too. Beside them, a cluster takes nothing for a while, and roles end each other
while no server looks.
"""

from __future__ import annotations

from riseml.base.names import HostName
from riseml.model import Capacity
from tests.support.memory_cluster import MemoryCluster
from tests.unit.control.history import NAMES, History
from tests.unit.control.laws import Laws
from tests.unit.control.steps import choice, integer, rule, several

SHAPES = (0, 1, 5, 6, 7, 8)
"""The gangs of `History` that a cluster may hold: without labels, and without models of GPUs."""

LARGEST = 5  # cores of the cluster that could hold each of these gangs


class ClusterHistory(History):
    """Three clusters, each of which is full with a gang or two."""

    @rule(sizes=several(choice(3, 4, 5), 2, 2), shapes=several(integer(0, len(SHAPES) - 1), 2, 2))
    def begin(self, sizes: list[int], shapes: list[int]) -> None:
        """Two experiments run or wait before the first fault."""
        hosts = {
            HostName(name): MemoryCluster(HostName(name), Capacity(cpus, 8192, ("a", "b")))
            for name, cpus in zip(NAMES, (*sizes, LARGEST), strict=True)
        }
        self.simulation = self.make_simulation({**hosts})
        for host in self.simulation.hosts.values():
            host.drains = False
        self.laws = Laws(self.simulation)
        self.simulation.witness = self.laws
        for shape, role in zip(shapes, (False, True), strict=True):
            self._submit(SHAPES[shape], 1, "paul", role=role)
        for _ in range(4):
            self._turn()

    @rule(shape=integer(0, len(SHAPES) - 1), retries=choice(0, 1, 2), user=choice("paul", "anna"))
    def submit(self, shape: int, retries: int, user: str) -> None:
        self._submit(SHAPES[shape], retries, user, role=False)
        self._turn()

    @rule(name=choice(*NAMES), trouble=choice("", "the controller does not answer"))
    def take_nothing_or_something(self, name: str, trouble: str) -> None:
        cluster = self.simulation.hosts[HostName(name)]
        assert isinstance(cluster, MemoryCluster)
        cluster.trouble = trouble
        self._turn()

    @rule(pick=integer(0, 99), codes=several(choice(0, 1), 1, 3))
    def roles_end_while_no_server_looks(self, pick: int, codes: list[int]) -> None:
        self.simulation.restart()
        running = self.simulation.running()
        if running:
            gang = self.simulation.running(running[pick % len(running)].experiment)
            for key, code in zip(sorted(gang), codes, strict=False):
                self.simulation.pass_time(1.0)
                self.simulation.exit(key.experiment, key.job, code)
        self._turn()

    def teardown(self) -> None:
        for cluster in self.simulation.hosts.values():
            assert isinstance(cluster, MemoryCluster)
            cluster.trouble = ""
        super().teardown()
