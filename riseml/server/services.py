"""The container of all parts of the server. `app` fills it once; the loop and the routes take from it what they
need, and nothing is added to it later.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.model import Owner
from riseml.server.attendance import Attendance
from riseml.server.data.clean import Cleaner
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.disk_keeper import DiskKeeper
from riseml.server.data.output_saver import OutputSaver
from riseml.server.data.output_watch import OutputWatch
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.swarm_keeper import SwarmKeeper
from riseml.server.open_counts import OpenCounter
from riseml.server.reconcile.action_tracker import ActionTracker
from riseml.server.reconcile.activities import Activities
from riseml.server.reconcile.capsule_writer import CapsuleWriter
from riseml.server.reconcile.log_pump import LogPump
from riseml.server.reconcile.metric_counter import MetricCounter
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.passes import PassCounter
from riseml.server.reconcile.wake import Wake
from riseml.server.timings import Timings
from riseml.server.usage.idle_watch import IdleWatch
from riseml.server.usage.monitor import Monitor
from riseml.server.usage.sample_recorder import SampleRecorder
from riseml.server.web.door import WebDoor
from riseml.store.experiment_names import ExperimentNames
from riseml.store.experiment_pages import ExperimentPages
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.log_store import LogStore
from riseml.store.marks import DrainedHosts, KeptOutputs
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.outcomes import OutcomeStore
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.sealed_variables import VariableSeals
from riseml.store.searches import SearchStore
from riseml.store.totals import StoreTotals
from riseml.store.written_files import WrittenStore


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Facts about this server process that never change while it runs."""

    id: str  # labels every container, network and folder that this server makes
    version: str  # of riseml
    revision: str  # `wire_revision`, of the code that this process runs
    pid: int
    owner: Owner  # the user that runs the server, and owns every experiment and output
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the loop and the routes work with."""

    settings: Settings
    info: ServerInfo
    experiments: ExperimentStore
    pages: ExperimentPages  # filtered and sorted lists of experiments, and the last values of their metrics
    seals: VariableSeals  # seals the variables that users pass on
    outcomes: OutcomeStore  # the outcomes of many experiments, read quickly
    searches: SearchStore  # sets whose points a search chooses
    names: ExperimentNames  # names for the completion of a shell
    logs: LogStore  # the output of jobs
    totals: StoreTotals  # numbers over the whole store
    open: OpenCounter  # how much is open, also while the store does not answer
    timings: Timings  # how long passes, actions and waits take
    metrics: MetricStore  # what jobs report, counted from their logs
    keeper: MetricCounter  # counts and saves metrics while jobs report
    snapshots: SnapshotStore  # project archives
    drained: DrainedHosts  # hosts that get no new jobs
    kept_outputs: KeptOutputs  # outputs that nothing removes
    written: WrittenStore  # what jobs wrote outside of OUTPUT_DIR
    hosts: HostSet
    monitor: Monitor  # samples what running jobs use, while a client asks
    samples: SampleRecorder  # samples every running job, and keeps the samples
    swarm: SwarmKeeper  # keeps the right managers of the pool's swarm
    idle: IdleWatch  # measures for how long jobs have shown no sign of life
    outputs: OutputWatch  # measures how much outputs take, where that is limited
    disks: DiskKeeper  # makes room on disks that are nearly full
    cleaner: Cleaner  # finds and removes what no experiment owns
    capsules: CapsuleWriter  # what is needed to run an experiment again
    tracker: ActionTracker  # starts actions and remembers their results
    attendance: Attendance  # which clients use which companion
    activities: Activities  # what hosts do for environments at this moment
    pump: LogPump  # follows the log of every container
    notifier: Notifier  # tells log readers that an experiment changed
    wake: Wake  # asks the loop for a pass
    search_wake: Wake  # asks the loop of searches for a pass
    passes: PassCounter  # how many passes the loop has completed, and what the last one observed
    web: WebDoor  # the listener of the web page
    request_stop: Callable[[], None]  # ends the server after the answers under way; jobs run on

    @property
    def saves(self) -> OutputSaver:
        """The outputs that experiments save in stores."""
        return self.data.saves

    @property
    def data(self) -> DataFetcher:
        """The data that experiments name."""
        return self.cleaner.data
