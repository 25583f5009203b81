"""The list of all faults."""

from __future__ import annotations

from tests.chaos.builds import build_faults
from tests.chaos.calls import call_faults
from tests.chaos.capsules import capsule_faults
from tests.chaos.clusters import cluster_faults
from tests.chaos.crashes import crash_faults
from tests.chaos.data_copies import copy_faults
from tests.chaos.disks import disk_faults
from tests.chaos.engines import engine_faults
from tests.chaos.harms import host_faults
from tests.chaos.homes import home_faults
from tests.chaos.load import load_faults
from tests.chaos.report_crashes import report_faults
from tests.chaos.searches import search_faults
from tests.chaos.sites import Fault
from tests.chaos.stores import store_faults
from tests.chaos.swarms import swarm_faults
from tests.chaos.takeovers import takeover_faults


def all_faults() -> tuple[Fault, ...]:
    """Return every fault in the order of the table."""
    kills = (*crash_faults(), *build_faults(), *disk_faults(), *report_faults(), *capsule_faults(), *store_faults())
    hosts = (
        *call_faults(),
        *engine_faults(),
        *host_faults(),
        *home_faults(),
        *swarm_faults(),
        *takeover_faults(),
        *cluster_faults(),
    )
    return (*kills, *copy_faults(), *hosts, *load_faults(), *search_faults())
