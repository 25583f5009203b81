"""The composition root: settings in, a served application out."""

from __future__ import annotations

import getpass
import logging
import os
import socket
import threading
from dataclasses import dataclass

from fastapi import FastAPI

from riseml import __version__
from riseml.errors import RisemlError
from riseml.executors.pool import HostPool
from riseml.model import Owner
from riseml.names import HostName
from riseml.server.api.failures import install_handlers
from riseml.server.api.limits import BodyLimit
from riseml.server.api.routes import Services, make_router
from riseml.server.clock import now
from riseml.server.identity import check_server, check_store_is_there
from riseml.server.pool.clean import Cleaner
from riseml.server.pool.hosts import Hosts
from riseml.server.pool.monitor import Monitor
from riseml.server.reconcile.action_tracker import ActionTracker
from riseml.server.reconcile.actor import Actor, Stores
from riseml.server.reconcile.log_pump import LogPump
from riseml.server.reconcile.loop import Loop, Parts
from riseml.server.reconcile.notifier import Notifier
from riseml.server.reconcile.wake import Wake
from riseml.settings import Settings
from riseml.store.database import Database
from riseml.store.drained_hosts import DrainedHosts
from riseml.store.experiments import ExperimentStore
from riseml.store.logs import LogStore
from riseml.store.snapshots import SnapshotStore
from riseml.store.usage import UsageReader

_PATIENCE = 2.0  # seconds that a pass waits for the hosts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Application:
    """The served application with what has to be started and stopped around it."""

    api: FastAPI
    loop: Loop
    database: Database
    services: Services


def make_application(settings: Settings, stop: threading.Event) -> Application:
    """Everything, connected; nothing runs yet.

    Raises:
        StoreError: the store cannot be used.
    """
    check_store_is_there(settings)
    holder = f"process {os.getpid()} on {socket.gethostname()} with the home {settings.home}"
    database = Database(settings.database, holder)
    experiments = ExperimentStore(database)
    server = experiments.load_server_id()
    check_server(settings, server)
    stores = Stores(
        experiments, LogStore(settings.home / "logs", settings.log_limit), SnapshotStore(settings.home / "snapshots")
    )
    notifier, wake = Notifier(), Wake()
    hosts = Hosts(settings, server, HostPool((), _PATIENCE, _report_silent))
    hosts.begin(experiments.load_world())
    books = ActionTracker(Actor(server, hosts, stores, notifier).perform, wake)
    pump = LogPump(stores.logs, notifier, wake)
    parts = Parts(settings, hosts, DrainedHosts(database), experiments, stores.logs, pump, books, notifier, wake)
    loop = Loop(parts)
    services = Services(
        parts=parts,
        stores=stores,
        loop=loop,
        monitor=Monitor(hosts.pool),
        cleaner=Cleaner(server, hosts.pool, stores.snapshots, UsageReader(database)),
        owner=_owner(),
        server=server,
        version=__version__,
        pid=os.getpid(),
        started_at=now(),
        stop=stop.set,
    )
    api = FastAPI(title="riseml", version=__version__, docs_url=None, redoc_url=None)
    api.add_middleware(BodyLimit)
    install_handlers(api)
    api.include_router(make_router(services))
    return Application(api, loop, database, services)


def _owner() -> Owner:
    """Who runs this server. A dot separates the parts of an ID, so that a user's name has none."""
    return Owner(getpass.getuser().replace(".", "-"), os.getuid(), os.getgid())


def _report_silent(host: HostName, error: RisemlError) -> None:
    log.warning("host %s does not answer: %s", host, error.message)
