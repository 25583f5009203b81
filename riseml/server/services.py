"""The containers of all parts of the server. `app` fills them once; the loop and the routes take from them what they
need, and nothing is added later.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.server.access.diagnoser import Diagnoser
from riseml.server.attendance import Attendance
from riseml.server.data.byte_meter import ByteMeter
from riseml.server.data.clean import Cleaner
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.disk_reclaimer import DiskReclaimer
from riseml.server.data.output_saver import OutputSaver
from riseml.server.data.output_watch import OutputWatch
from riseml.server.gate.key_authenticator import KeyAuthenticator
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.registry_logins import RegistryLogins
from riseml.server.hosts.swarm_reconciler import SwarmReconciler
from riseml.server.open_counts import OpenCounter
from riseml.server.reconcile.action_tracker import ActionTracker
from riseml.server.reconcile.activities import Activities
from riseml.server.reconcile.capsule_writer import CapsuleWriter
from riseml.server.reconcile.log_pump import LogPump
from riseml.server.reconcile.metric_counter import MetricCounter
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.passes import PassCounter
from riseml.server.reconcile.progress_tracker import ProgressTracker
from riseml.server.reconcile.run_secrets import RunSecrets
from riseml.server.reconcile.wake import Wake
from riseml.server.timings import Timings
from riseml.server.usage.idle_watch import IdleWatch
from riseml.server.usage.monitor import Monitor
from riseml.server.usage.sample_recorder import SampleRecorder
from riseml.server.usage.stall_watch import StallWatch
from riseml.server.usage.team_ledger import TeamLedger
from riseml.server.web.listener import WebListener
from riseml.spec.server.types import ServerConfig
from riseml.store.accounts import AccountStore
from riseml.store.annotations import AnnotationStore
from riseml.store.audit_log import AuditLog
from riseml.store.capsules import CapsuleStore
from riseml.store.diagnoses import DiagnosisStore
from riseml.store.experiment_names import ExperimentNames
from riseml.store.experiment_pages import ExperimentPages
from riseml.store.experiments import ExperimentStore
from riseml.store.key_digests import KeyDigests
from riseml.store.logs.log_store import LogStore
from riseml.store.marks import DrainedHosts, KeptOutputs
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.metrics.run_values import RunValues
from riseml.store.outcomes import OutcomeStore
from riseml.store.placements import PlacementStore
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.provider_subjects import ProviderSubjects
from riseml.store.quota_admission import QuotaAdmission
from riseml.store.quotas import QuotaStore
from riseml.store.reports import ReportStore
from riseml.store.sealed_variables import VariableSeals
from riseml.store.searches import SearchStore
from riseml.store.secret_store import SecretStore
from riseml.store.sessions import SessionStore
from riseml.store.table_views import TableViewStore
from riseml.store.team_projects import TeamProjectStore
from riseml.store.totals import StoreTotals
from riseml.store.written_files import WrittenStore


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Facts about this server process that never change while it runs."""

    id: str  # labels every container, network and folder that this server makes
    version: str  # version of riseml
    revision: str  # `wire_revision`, of the code that this process runs
    pid: int
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Stores:
    """What the server keeps: in the database, and in files of its home."""

    experiments: ExperimentStore
    pages: ExperimentPages  # filtered and sorted lists of experiments, and the last values of their metrics
    outcomes: OutcomeStore  # the outcomes of many experiments, read quickly
    names: ExperimentNames  # names for the completion of a shell
    annotations: AnnotationStore  # names, tags and notes of experiments
    searches: SearchStore  # sets whose points a search chooses
    totals: StoreTotals  # numbers over the whole store
    drained: DrainedHosts  # hosts that get no new jobs
    kept_outputs: KeptOutputs  # outputs that nothing removes
    written: WrittenStore  # what jobs wrote outside of OUTPUT_DIR
    metrics: MetricStore  # what jobs report, counted from their logs
    run_values: RunValues  # the values by which runs are ranked
    logs: LogStore  # the output of jobs
    snapshots: SnapshotStore  # project archives
    diagnoses: DiagnosisStore  # why experiments made no progress
    capsules: CapsuleStore  # what is needed to run an experiment again
    quotas: QuotaStore  # quotas that an administrator has set
    placements: PlacementStore  # when experiments had places, and what they held
    seals: VariableSeals  # seals the variables that users pass on
    accounts: AccountStore  # users and keys of a team's server
    team_projects: TeamProjectStore  # projects that several users share
    sessions: SessionStore  # sessions of browsers and commands at a team's server
    provider_subjects: ProviderSubjects  # which persons of the organisation's provider the users are
    key_digests: KeyDigests  # keyed hashes of what lets callers in
    reports: ReportStore  # reports that users have written
    table_views: TableViewStore  # saved views of the table of experiments
    secrets: SecretStore  # secrets and the credentials of registries


@dataclass(frozen=True, slots=True)
class DataServices:
    """What moves and removes the files of experiments, on hosts and in stores of objects."""

    fetcher: DataFetcher  # fetches the data that experiments name
    cleaner: Cleaner  # finds and removes what no experiment owns
    disks: DiskReclaimer  # makes room on disks that are nearly full
    outputs: OutputWatch  # measures how much outputs take, where that is limited
    capsules: CapsuleWriter  # writes the capsules of experiments
    registries: RegistryLogins  # the credentials with which images are pulled

    @property
    def saver(self) -> OutputSaver:
        """What saves the outputs of experiments in stores of objects."""
        return self.fetcher.saves


@dataclass(frozen=True, slots=True)
class Watchers:
    """What measures and counts while the server runs."""

    progress: ProgressTracker  # knows how far jobs are
    metrics: MetricCounter  # counts and saves metrics while jobs report
    monitor: Monitor  # samples what running jobs use, while a client asks
    samples: SampleRecorder  # samples every running job, and keeps the samples
    idle: IdleWatch  # measures for how long jobs have shown no sign of life
    stalls: StallWatch  # knows which experiments make no progress any more
    diagnoser: Diagnoser  # says why they make none
    swarm: SwarmReconciler  # keeps the right managers of the pool's swarm
    attendance: Attendance  # which clients use which companion
    activities: Activities  # what hosts do for environments at this moment
    timings: Timings  # how long passes, actions and waits take
    open_counter: OpenCounter  # how much is open, also while the store does not answer


@dataclass(frozen=True, slots=True)
class TeamParts:
    """What only a server for a team has."""

    ledger: TeamLedger  # quotas and hours, for the loop
    admission: QuotaAdmission  # refuses submissions above a quota
    meter: ByteMeter  # measures logs and outputs


@dataclass(frozen=True, slots=True)
class Loops:
    """What the loops work with, and what wakes them."""

    tracker: ActionTracker  # starts actions and remembers their results
    pump: LogPump  # follows the log of every container
    secrets: RunSecrets  # masks the secrets of runs
    notifier: Notifier  # tells log readers that an experiment changed
    passes: PassCounter  # how many passes the loop has completed, and what the last one observed
    wake: Wake  # asks the loop for a pass
    search_wake: Wake  # asks the loop of searches for a pass


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the loop and the routes work with, in groups: a function takes the group that it uses."""

    settings: Settings
    config: ServerConfig | None  # server.yml, of a server for a team; None: it answers its own user alone
    audit: AuditLog | None  # of a server for a team
    team: TeamParts | None  # None: the server answers its own user alone
    info: ServerInfo
    stores: Stores
    hosts: HostSet
    data: DataServices
    watchers: Watchers
    loops: Loops
    web: WebListener  # the listener of the web page
    keys: KeyAuthenticator | None  # knows the keys of a team's server; None: the server has one user
    request_stop: Callable[[], None]  # ends the server after the answers under way; jobs run on
