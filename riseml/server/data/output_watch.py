"""Measure the outputs of experiments that run, where the server has a limit for each of them (RISEML_OUTPUT_LIMIT).

One thread measures them all, one after the other, and rests ten times as long as that took: what a job writes between
two measurements is not bounded. A disk that does not answer ends no experiment; an output that hides what it holds, in
a folder that the server may not read or below two hundred others, does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from riseml.base.amounts import format_bytes
from riseml.base.errors import Refused, RisemlError
from riseml.base.names import CanonicalId, HostName
from riseml.base.states import TERMINAL, State
from riseml.model import Experiment, World
from riseml.server.data.file_places import open_output
from riseml.server.hosts.host_set import HostSet

_PAUSE = 5.0  # seconds between two measurements at least
_REST = 10  # times as long as the measurement took

log = logging.getLogger(__name__)


class OutputWatch:
    """Measures the outputs of the experiments that run.

    Args:
        hosts: the hosts of the server.
        limit: bytes that the output of one experiment may take on a disk; None: it measures nothing.
        clock: returns seconds that only grow.

    Example:
        watch.find_over(world)  # {4: "its output takes 2 GiB, and RISEML_OUTPUT_LIMIT allows 1 GiB"}
    """

    def __init__(self, hosts: HostSet, limit: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._hosts = hosts
        self._limit = limit
        self._clock = clock
        self._over: Mapping[int, str] = {}  # replaced, never changed
        self._not_before = 0.0
        self._worker: threading.Thread | None = None

    def find_over(self, world: World) -> Mapping[int, str]:
        """Return the experiments whose outputs were too large, with a sentence for each, and measure again when that is
        due. Returns at once.
        """
        if self._limit is None or self._clock() < self._not_before or self._is_measuring():
            return self._over
        running = [experiment for experiment in world.experiments if _writes(experiment)]
        if running:
            self._worker = threading.Thread(
                target=self._measure_all, args=(running, self._limit), name="outputs", daemon=True
            )
            self._worker.start()
        return self._over

    def _is_measuring(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def _measure_all(self, experiments: list[Experiment], limit: int) -> None:
        begun = self._clock()
        over: dict[int, str] = {}
        for experiment in experiments:
            for host in self._list_hosts(experiment):
                problem = self._judge(experiment, host, limit)
                if problem is not None:
                    over[experiment.id] = problem
                    break
        self._over = over
        ended = self._clock()
        self._not_before = ended + max(_PAUSE, _REST * (ended - begun))

    def _list_hosts(self, experiment: Experiment) -> Iterator[HostName]:
        """Yield the hosts whose disks have the output: one where all hosts share the folder."""
        hosts = dict.fromkeys(job.host for job in experiment.gang if job.host is not None)
        yield from list(hosts)[:1] if self._hosts.shared_output else hosts

    def _judge(self, experiment: Experiment, host: HostName, limit: int) -> str | None:
        """Return what is wrong with an output; None: nothing, or its host cannot tell."""
        try:
            files = open_output(self._hosts, [experiment], CanonicalId(experiment.number, experiment.sub), host)
            try:
                used = files.count_used()
            except Refused as error:
                return f"its output cannot be measured for RISEML_OUTPUT_LIMIT: {error.message}"
        except RisemlError as error:  # it is not made yet, or its host does not answer
            log.info("the output of %s was not measured: %s", experiment.id, error.message)
            return None
        except Exception:
            log.exception("the output of %s was not measured", experiment.id)
            return None
        if used <= limit:
            return None
        return f"its output takes {format_bytes(used)}, and RISEML_OUTPUT_LIMIT allows {format_bytes(limit)}"


def _writes(experiment: Experiment) -> bool:
    """Return True while jobs of an experiment with an output of its own run."""
    running = any(job.state is State.RUNNING for job in experiment.gang)
    return running and experiment.state not in TERMINAL and not experiment.reads
