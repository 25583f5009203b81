"""The composition root: settings in, a served application out. Read it from top to bottom to see what the server is."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from fastapi import FastAPI
from starlette.types import ASGIApp

from riseml import __version__, wire
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.errors import RisemlError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.settings import Settings
from riseml.base.wire_revision import read_revision
from riseml.control.actions import Action
from riseml.executors.pool import HostPool
from riseml.model import Caller, Experiment, Owner
from riseml.server.access.diagnoser import Diagnoser
from riseml.server.api.access_check import guard_routes
from riseml.server.api.failures import Api, install_handlers
from riseml.server.api.limits import BodyLimit
from riseml.server.api.proxied_app import ProxiedApp
from riseml.server.api.routes.late_route import LateRoute
from riseml.server.api.routes.router import make_router
from riseml.server.api.routes.sample_routes import add_prometheus_routes
from riseml.server.api.views.metric_views import show_summary
from riseml.server.api.views.remark_views import list_remarks
from riseml.server.attendance import Attendance
from riseml.server.clock import now
from riseml.server.data.byte_meter import ByteMeter
from riseml.server.data.clean import Cleaner
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.data.disk_reclaimer import DiskReclaimer
from riseml.server.data.output_watch import OutputWatch
from riseml.server.end_recovery import recover_ends
from riseml.server.gate.audit_gate import add_audit
from riseml.server.gate.key_authenticator import KeyAuthenticator
from riseml.server.gate.server_user import find_server_user
from riseml.server.gate.socket_gate import SocketGate
from riseml.server.gate.user_ids import UserIds
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.registry_logins import RegistryLogins
from riseml.server.hosts.swarm_reconciler import SwarmReconciler
from riseml.server.hosts.team_rules import make_team_rules
from riseml.server.identity import check_store_is_there, find_own_home, record_server
from riseml.server.open_counts import OpenCounter, OpenCounts
from riseml.server.reconcile.action_tracker import ActionTracker, Perform
from riseml.server.reconcile.activities import Activities
from riseml.server.reconcile.actor import Actor
from riseml.server.reconcile.capsule_writer import CapsuleWriter
from riseml.server.reconcile.log_pump import LogPump, NoteOutput, OutputReaders, join_readers
from riseml.server.reconcile.loop import ControlLoop
from riseml.server.reconcile.metric_counter import MetricCounter
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.output_collector import CollectorParts, OutputCollector
from riseml.server.reconcile.passes import PassCounter
from riseml.server.reconcile.progress_tracker import ProgressTracker
from riseml.server.reconcile.run_secrets import RunSecrets
from riseml.server.reconcile.search_loop import SearchLoop, SearchLoopParts
from riseml.server.reconcile.trial_metrics import StoredMetrics
from riseml.server.reconcile.wake import JointWake, Wake
from riseml.server.server_file import read_server_config
from riseml.server.services import DataServices, Loops, ServerInfo, Services, Stores, TeamParts, Watchers
from riseml.server.timings import Timings
from riseml.server.tls.host_names import find_own_address
from riseml.server.tls.name_gate import NameGate
from riseml.server.tls.tls_connections import KeyLimit
from riseml.server.tls.tls_listener import TlsListener
from riseml.server.usage.idle_watch import IdleWatch
from riseml.server.usage.monitor import Monitor
from riseml.server.usage.sample_recorder import SampleRecorder
from riseml.server.usage.stall_watch import StallWatch
from riseml.server.usage.team_ledger import TeamLedger
from riseml.server.web.access import WebAccess
from riseml.server.web.listener import WebListener
from riseml.server.web.proxied_app_auth import PROXIED_APP_MOUNT
from riseml.server.webhooks.delivery_notes import DeliveryNotes
from riseml.server.webhooks.milestone_detector import MilestoneDetector
from riseml.server.webhooks.remark_watch import FoundRemark, RemarkWatch
from riseml.server.webhooks.webhook_loop import WebhookLoop, WebhookLoopParts
from riseml.spec.server.types import ServerConfig
from riseml.store.accounts import AccountStore, User
from riseml.store.annotations import AnnotationStore, Subject
from riseml.store.audit_log import AuditLog
from riseml.store.capsules import CapsuleStore
from riseml.store.claim import ALONE, ClaimTerms
from riseml.store.database import Database
from riseml.store.diagnoses import DiagnosisStore
from riseml.store.ends import EndStore
from riseml.store.experiment_names import ExperimentNames
from riseml.store.experiment_pages import ExperimentPages
from riseml.store.experiments import ExperimentStore
from riseml.store.journal import ExperimentJournal
from riseml.store.key_digests import KeyDigests
from riseml.store.logs.log_file import renew_file
from riseml.store.logs.log_store import LogFence, LogStore
from riseml.store.marks import DrainedHosts, KeptOutputs
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.metrics.run_values import RunValues
from riseml.store.milestones import MilestoneStore
from riseml.store.noted_remarks import RemarkStore
from riseml.store.outcomes import OutcomeStore
from riseml.store.placements import PlacementStore
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.provider_subjects import ProviderSubjects
from riseml.store.quota_admission import QuotaAdmission
from riseml.store.quotas import QuotaStore
from riseml.store.reports import ReportStore
from riseml.store.samples.sample_store import SampleStore
from riseml.store.sealed_variables import VariableSeals, make_seals
from riseml.store.searches import SearchStore
from riseml.store.secret_store import SecretStore
from riseml.store.sessions import SessionStore
from riseml.store.table_views import TableViewStore
from riseml.store.team_projects import TeamProjectStore
from riseml.store.totals import StoreTotals
from riseml.store.usage import LastUseReader
from riseml.store.written_files import WrittenStore

_HOST_DEADLINE = 2.0  # seconds that a pass waits for the answers of the hosts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Application:
    """The served application, and the threads and connections that the process starts and stops with it."""

    api: FastAPI
    gate: ASGIApp  # at the unix socket
    tls: TlsListener | None  # of a server for a team
    tls_gate: ASGIApp | None  # behind it
    loop: ControlLoop
    search_loop: SearchLoop
    webhooks: WebhookLoop
    database: Database
    services: Services


def make_application(settings: Settings, stop: threading.Event, terms: ClaimTerms = ALONE) -> Application:
    """Connect everything; nothing runs yet. Setting `stop` ends the server. `terms`: how it claims its store.

    Raises:
        StoreError: the store cannot be used.
        RisemlError: server.yml or pool.yml has problems, or the settings name an executor that cannot run here; or a
            team's server has no certificate, or cannot listen at its address.
    """
    config = read_server_config(settings.server_file)
    if config is not None and config.secrets_key is not None:
        settings = replace(settings, secrets_key=Path(config.secrets_key))
    tls = None if config is None else TlsListener(config, settings.home)
    check_store_is_there(settings)
    home = find_own_home(settings)
    if config is not None:
        terms = replace(terms, address=find_own_address(config))
    database = Database(settings.database, _describe_holder(settings), home=home, terms=terms)
    server_user = find_server_user(None if config is None else config.users)
    with ExitStack() as refused:
        if tls is not None:
            refused.callback(tls.close)  # a server that is refused keeps no address
        services = _make_services(settings, config, database, server_user, stop)
        refused.pop_all()
    _recover_ends(services)
    webhooks = WebhookLoop(settings.home, desk := _make_webhook_desk(services, database))
    milestones = MilestoneDetector(services.stores.metrics.read_summaries, desk.milestones, desk.news.set)
    services.watchers.metrics.call_when_counted(milestones.note_counted)
    loop = ControlLoop(services, webhooks.note_end)
    api = _make_api(services)
    gate = add_audit(api, services.audit, now, lambda audited: SocketGate(audited, server_user))
    tls_gate = None if tls is None else _make_tls_gate(api, services, tls.names)
    return Application(api, gate, tls, tls_gate, loop, _make_search_loop(services), webhooks, database, services)


def _make_tls_gate(api: ASGIApp, services: Services, names: Collection[str]) -> ASGIApp:
    """Return the gate of a team's listener: names and origins first, then keys and sessions, then how much each asks at
    once.
    """
    from riseml.server.team_page import make_team_gate  # the server of one user does without it

    config = services.config
    keys = services.keys
    assert config is not None
    assert keys is not None  # a server with a listener has a server.yml

    def make_gate(audited: ASGIApp) -> ASGIApp:
        gate = make_team_gate(
            KeyLimit(audited), config, services.stores, keys, _make_owner_finder(config), tuple(names)
        )
        return NameGate(gate, names)

    return add_audit(api, services.audit, now, make_gate)


def _open_audit(path: Path, database: Database) -> AuditLog:
    """Open the audit log; a server before this one that may still live writes into a file without a name from now on.

    Raises:
        StoreError: the file cannot be used.
    """
    if database.took_over:
        renew_file(path)
    return AuditLog(path, database.check_claim)


def _recover_ends(services: Services) -> None:
    """Give the store again what it has lost, before anything can act."""
    home = services.settings.home
    output = services.hosts.roots.output
    folder = Path(output) if isinstance(output, str) else None
    recover_ends(services.stores.experiments, _make_journal(home), services.stores.capsules.load_capsule, folder)


def _make_journal(home: Path) -> ExperimentJournal:
    return ExperimentJournal(home / "experiments.journal")


def _make_webhook_desk(services: Services, database: Database) -> WebhookLoopParts:
    return WebhookLoopParts(
        server=services.info.id,
        ends=EndStore(database),
        milestones=MilestoneStore(database),
        remarks=RemarkWatch(
            RemarkStore(database),
            lambda: services.stores.experiments.load_world().experiments,
            lambda experiment: _find_remarks(services, experiment),
            is_team=services.config is not None,
        ),
        experiments=services.stores.experiments,
        searches=services.stores.searches,
        news=threading.Event(),
        note=DeliveryNotes(services.stores.logs, services.loops.notifier.publish_lines).note,
        is_team=services.config is not None,
    )


def _find_remarks(services: Services, experiment: Experiment) -> list[FoundRemark]:
    views = list_remarks(experiment, services.watchers, services.stores, now())
    return [FoundRemark(view["kind"], view["job"], view["text"]) for view in views]


def _make_search_loop(services: Services) -> SearchLoop:
    desk = SearchLoopParts(
        experiments=services.stores.experiments,
        searches=services.stores.searches,
        metrics=StoredMetrics(services.stores.metrics, services.stores.run_values),
        logs=services.stores.logs,
        notifier=services.loops.notifier,
        wake=services.loops.search_wake,
        loop_wake=services.loops.wake,
    )
    return SearchLoop(desk)


def _make_services(
    settings: Settings, config: ServerConfig | None, database: Database, server_user: Caller, stop: threading.Event
) -> Services:
    """Open the stores and the hosts, and make what works with them."""
    experiments = ExperimentStore(database, _make_journal(settings.home))
    server = experiments.load_server_id()
    record_server(settings, server)
    stores = _open_stores(settings, database, experiments, make_seals(settings, server))
    stores.seals.seal_earlier_values(experiments.reseal_variables)
    stores.secrets.erase_closed()  # of runs that an earlier server has closed

    hosts = _open_hosts(settings, config, database, experiments)
    data = _make_data_services(stores, hosts, server, LastUseReader(database))

    wake = Wake()
    search_wake = Wake()
    metrics = _recover_metrics(stores, search_wake)
    notifier = Notifier(metrics.note_growth)
    activities = Activities()
    timings = Timings()
    run_secrets = RunSecrets(stores.secrets, stores.seals)
    actor = Actor(
        server=server,
        hosts=hosts,
        experiments=experiments,
        logs=stores.logs,
        snapshots=stores.snapshots,
        notifier=notifier,
        activities=activities,
        capsules=data.capsules,
        data=data.fetcher,
        disks=data.disks,
        check_claim=database.check_claim,
        secrets=run_secrets,
        registries=data.registries,
    )
    progress = ProgressTracker()
    samples = SampleRecorder(hosts.pool, SampleStore(settings.home / "samples"))
    stalls, diagnoser = _make_stall_watch(hosts, stores, samples)
    readers = (notifier, run_secrets, join_readers(progress.note_frames, stalls.note_frames))
    loops = _make_loops(_time_actions(actor.perform, timings), stores, hosts, readers, (wake, search_wake))
    watchers = Watchers(
        progress=progress,
        metrics=metrics,
        monitor=Monitor(hosts.pool, samples.note_watched),
        samples=samples,
        idle=IdleWatch(hosts.pool, loops.pump.count_lines),
        stalls=stalls,
        diagnoser=diagnoser,
        swarm=SwarmReconciler(hosts),
        attendance=Attendance(),
        activities=activities,
        timings=timings,
        open_counter=_make_counter(stores, database),
    )
    return Services(
        settings=settings,
        config=config,
        audit=None if config is None else _open_audit(Path(config.audit), database),
        team=None if config is None else _make_team_parts(config, stores, hosts),
        info=ServerInfo(server, __version__, read_revision(), os.getpid(), now()),
        stores=stores,
        hosts=hosts,
        data=data,
        watchers=watchers,
        loops=loops,
        web=WebListener(WebAccess(settings.home / "web.json"), lambda session: server_user),
        keys=None if config is None else KeyAuthenticator(stores.accounts, _make_owner_finder(config), now),
        request_stop=stop.set,
    )


def _recover_metrics(stores: Stores, search_wake: Wake) -> MetricCounter:
    """Return what counts metrics; it has counted what an earlier server may have left."""
    metrics = MetricCounter(stores.metrics, lambda _: search_wake.set())
    metrics.recover()
    return metrics


def _make_stall_watch(hosts: HostSet, stores: Stores, samples: SampleRecorder) -> tuple[StallWatch, Diagnoser]:
    diagnoser = Diagnoser(hosts, samples.store, stores.diagnoses)
    return StallWatch(stores.logs.is_job_full, diagnoser.begin), diagnoser


def _make_loops(
    perform: Perform,
    stores: Stores,
    hosts: HostSet,
    readers: tuple[Notifier, RunSecrets, NoteOutput],
    wakes: tuple[Wake, Wake],
) -> Loops:
    """Return what the loops work with.

    Args:
        perform: performs an action.
        stores: of the server.
        hosts: of the pool.
        readers: what tells readers of logs, what masks secrets before they read, and what reads the output.
        wakes: of the control loop, and of the loop of searches.
    """
    notifier, secrets, note_output = readers
    wake, search_wake = wakes
    collector = OutputCollector(
        CollectorParts(hosts, stores.experiments, stores.snapshots, stores.logs, stores.written)
    )
    return Loops(
        tracker=ActionTracker(perform, wake),
        pump=LogPump(
            stores.logs,
            notifier,
            JointWake(wake, search_wake),
            collector.collect,
            OutputReaders(secrets.find_masker, stores.experiments.find_bar_rule, note_output),
        ),
        secrets=secrets,
        notifier=notifier,
        passes=PassCounter(wake, now()),
        wake=wake,
        search_wake=search_wake,
    )


def _open_hosts(
    settings: Settings, config: ServerConfig | None, database: Database, experiments: ExperimentStore
) -> HostSet:
    pool = HostPool((), _HOST_DEADLINE, _report_silent)
    hosts = HostSet(settings, experiments.load_server_id(), pool, database.check_claim, make_team_rules(config))
    hosts.open_hosts(experiments.load_world())
    return hosts


def _open_stores(settings: Settings, database: Database, experiments: ExperimentStore, seals: VariableSeals) -> Stores:
    digests = KeyDigests(settings.home)
    fence = LogFence(database.check_claim, renews_files=database.took_over)
    logs = LogStore(settings.home / "logs", settings.log_limit, fence)
    if database.took_over:
        logs.renew_files(experiment.id for experiment in experiments.load_world().experiments)
    outcomes = OutcomeStore(database)
    metrics = MetricStore(database, logs, experiments.find_patterns)
    return Stores(
        experiments=experiments,
        pages=ExperimentPages(database),
        outcomes=outcomes,
        names=ExperimentNames(database),
        annotations=AnnotationStore(database),
        searches=SearchStore(database, _make_journal(settings.home)),
        totals=StoreTotals(database),
        drained=DrainedHosts(database),
        kept_outputs=KeptOutputs(database),
        written=WrittenStore(database),
        metrics=metrics,
        run_values=RunValues(metrics, outcomes),
        logs=logs,
        snapshots=SnapshotStore(settings.snapshots, settings.upload_limit),
        capsules=CapsuleStore(settings.home / "capsules"),
        diagnoses=DiagnosisStore(settings.home / "diagnoses"),
        quotas=QuotaStore(database),
        placements=PlacementStore(database),
        seals=seals,
        reports=ReportStore(database),
        table_views=TableViewStore(database),
        secrets=SecretStore(database, seals, is_team=settings.is_team),
        accounts=AccountStore(database, digests),
        team_projects=TeamProjectStore(database),
        sessions=SessionStore(database, digests.compute_digest),
        provider_subjects=ProviderSubjects(database),
        key_digests=digests,
    )


def _make_owner_finder(config: ServerConfig) -> Callable[[User], Owner]:
    """Return what finds the uid and gid of a user's jobs."""
    ids = UserIds(config.users)
    return lambda user: ids.find_owner(user.name, user.uid, user.gid)


def _make_team_parts(config: ServerConfig, stores: Stores, hosts: HostSet) -> TeamParts:
    meter = ByteMeter(stores.experiments, hosts, stores.logs)
    return TeamParts(
        ledger=TeamLedger(config.quotas, stores.quotas, stores.placements),
        admission=QuotaAdmission(config.quotas, stores.snapshots.measure_files, meter.find_measured),
        meter=meter,
    )


def _make_data_services(stores: Stores, hosts: HostSet, server: str, last_uses: LastUseReader) -> DataServices:
    def read_results(experiment: int) -> Mapping[str, wire.MetricView]:
        summaries = stores.metrics.read_summaries([experiment]).get(experiment, {})
        return {name: show_summary(summary) for name, summary in summaries.items()}

    def read_annotation(experiment: Experiment) -> Annotation:
        annotations = stores.annotations.load(experiment.owner.user, [experiment.number])
        of_set = annotations.get(Subject(experiment.number), NO_ANNOTATION)
        own = annotations.get(Subject(experiment.number, experiment.sub or 0), NO_ANNOTATION)
        return own.add_set(of_set)

    fetcher = DataFetcher(server, hosts)
    cleaner = Cleaner(server, hosts.pool, stores.snapshots, stores.capsules, last_uses, fetcher)
    return DataServices(
        fetcher=fetcher,
        cleaner=cleaner,
        disks=DiskReclaimer(cleaner, hosts),
        outputs=OutputWatch(hosts, hosts.settings.output_limit),
        capsules=CapsuleWriter(
            hosts,
            stores.snapshots,
            stores.capsules,
            read_results,
            read_annotation,
            __version__,
            stores.diagnoses,
        ),
        registries=RegistryLogins(stores.secrets, hosts.settings, os.environ),
    )


def _make_counter(stores: Stores, database: Database) -> OpenCounter:
    def read() -> OpenCounts:
        return OpenCounts(*stores.experiments.count_unfinished(), stores.searches.count_open())

    return OpenCounter(read, str(database), may_hang=database.is_elsewhere)


def _time_actions(perform: Perform, timings: Timings) -> Perform:
    """Return `perform`, whose durations are counted by the kind of the action."""

    def perform_timed(action: Action, experiment: Experiment | None) -> None:
        with timings.find_actions(type(action).__name__).measure():
            perform(action, experiment)

    return perform_timed


def _make_api(services: Services) -> FastAPI:
    api = Api(title="riseml", version=__version__, docs_url=None, redoc_url=None)
    api.add_middleware(BodyLimit)
    install_handlers(api)
    api.router.route_class = LateRoute
    api.router.routes.extend(make_router(services).routes)
    add_prometheus_routes(api.router, services)
    guard_routes(api.router.routes, services.stores)
    api.mount(PROXIED_APP_MOUNT, ProxiedApp(services))
    return api


def _describe_holder(settings: Settings) -> str:
    """Return the words with which this server tells another one that it holds the store."""
    return f"process {os.getpid()} on {socket.gethostname()} with the home {settings.home}"


def _report_silent(host: HostName, error: RisemlError) -> None:
    log.warning("host %s does not answer: %s", host, error.message)
