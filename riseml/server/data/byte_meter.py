"""Measure what the logs and outputs of each user and team project take, on a server of a team.

One thread measures them, and rests ten times as long as that took. It reads each experiment that is open or was never
measured, and some of the others in turn: their outputs change only when a user removes something.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from riseml.base.errors import RisemlError
from riseml.base.names import CanonicalId
from riseml.control.quotas import Account, list_accounts
from riseml.model import Experiment
from riseml.server.data.file_places import open_output
from riseml.server.hosts.host_set import HostSet
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore
from riseml.store.quota_admission import NOTHING_MEASURED, MeasuredBytes

_PAUSE = 10.0  # seconds between two measurements at least
_REST = 10  # times as long as the measurement took
_AGAIN = 50  # experiments that are closed and measured again each time

log = logging.getLogger(__name__)


class ByteMeter:
    """Measures logs and outputs, and adds them up by user and project. Safe from many threads.

    Args:
        experiments: of the server.
        hosts: that have the outputs.
        logs: of the server.
        clock: returns seconds that only grow.
    """

    def __init__(
        self,
        experiments: ExperimentStore,
        hosts: HostSet,
        logs: LogStore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._experiments = experiments
        self._hosts = hosts
        self._logs = logs
        self._clock = clock
        self._measured: dict[int, tuple[tuple[Account, ...], MeasuredBytes]] = {}  # the latest last; of one thread
        self._sums: Mapping[Account, MeasuredBytes] = {}  # replaced, never changed
        self._not_before = 0.0
        self._worker: threading.Thread | None = None

    def find_measured(self, account: Account) -> MeasuredBytes:
        """Return what the files of an account took when they were last measured."""
        return self._sums.get(account, NOTHING_MEASURED)

    def measure_when_due(self) -> None:
        """Measure again when that is due. Returns at once."""
        if self._clock() < self._not_before or (self._worker is not None and self._worker.is_alive()):
            return
        self._worker = threading.Thread(target=self._measure, name="bytes", daemon=True)
        self._worker.start()

    def _measure(self) -> None:
        begun = self._clock()
        try:
            self.measure_now()
        except RisemlError as error:
            log.info("logs and outputs were not measured: %s", error.message)
        except Exception:
            log.exception("logs and outputs were not measured")
        ended = self._clock()
        self._not_before = ended + max(_PAUSE, _REST * (ended - begun))

    def measure_now(self) -> None:
        """Measure what is due, and add it up."""
        unclosed, closed = self._experiments.list_ids()
        again = [identity for identity in self._measured if identity in closed][:_AGAIN]
        due = [*unclosed, *(identity for identity in closed if identity not in self._measured), *again]
        for identity in due:
            experiment = self._experiments.get_experiment(identity).experiment
            accounts = list_accounts(experiment.owner.user, experiment.team_project)
            self._measured.pop(identity, None)
            self._measured[identity] = (accounts, self._measure_files(experiment))
        self._sums = _add_up(self._measured.values())

    def _measure_files(self, experiment: Experiment) -> MeasuredBytes:
        output = 0
        hosts = dict.fromkeys(job.host for job in experiment.gang if job.host is not None)
        for host in list(hosts)[:1] if self._hosts.shared_output else list(hosts):
            try:
                files = open_output(self._hosts, [experiment], CanonicalId(experiment.number, experiment.sub), host)
                output += files.count_used()
            except RisemlError as error:  # it is not made yet, it was removed, or its host does not answer
                log.debug("the output of %s was not measured: %s", experiment.id, error.message)
        return MeasuredBytes(self._logs.log_size(experiment.id), output)


def _add_up(measured: Iterable[tuple[tuple[Account, ...], MeasuredBytes]]) -> dict[Account, MeasuredBytes]:
    sums: dict[Account, MeasuredBytes] = {}
    for accounts, size in measured:
        for account in accounts:
            before = sums.get(account, NOTHING_MEASURED)
            sums[account] = MeasuredBytes(before.log_bytes + size.log_bytes, before.output_bytes + size.output_bytes)
    return sums
