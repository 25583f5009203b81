"""What no empty pool could hold: refused when it is submitted, with the reason for each host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from riseml.control.observation import Observation
from riseml.control.placement.fit import Gang, fit, make_gang
from riseml.control.placement.ledger import Site, find_sites, left_of
from riseml.model import HostSeen
from riseml.names import HostName, JobName
from riseml.spec.config.types import Labels, Resources
from riseml.states import Network

_ANY = "any"


def misfit(needs: Mapping[JobName, Resources], seen: Observation) -> tuple[str, ...]:
    """Why the hosts could not hold the gang even if nothing ran on them, drained and silent ones included.

    Returns:
        What is needed, then a sentence for each host; empty when they could.
    """
    gang = make_gang(tuple(needs.values()))
    sites = find_sites(seen, (), ())
    room = {name: left_of(host.capacity, ()) for name, host in seen.hosts.items()}
    if fit(gang, room, sites) is not None:
        return ()
    who = "the job needs" if gang.size == 1 else f"the {gang.size} jobs together need"
    wanted = f"{who} {describe(gang.whole)}{_with_labels(gang.whole.labels)}"
    linked = {name: replace(site, link=_ANY) for name, site in sites.items()}
    several = gang.size > 1 and fit(gang, room, linked) is not None
    apart = (f"it needs several hosts, but {_why_apart(seen)}",) if several else ()
    return (
        wanted,
        *apart,
        *(_describe_host(name, host, gang, sites[name]) for name, host in sorted(seen.hosts.items())),
    )


def describe(need: Resources) -> str:
    """`2 cpus, 512 MiB and 1 gpus`"""
    return f"{need.cpus:g} cpus, {need.mem} MiB and {need.gpus} gpus"


def show_label(label: tuple[str, str]) -> str:
    """`gpu=a100`"""
    return "=".join(label)


def _why_apart(seen: Observation) -> str:
    if not seen.shared_output:
        return "they share no output"
    if seen.network is Network.OVERLAY:
        return "they are not in one swarm that has a manager"
    if seen.network is Network.HOST:
        return "they have no addresses"
    return "the pool has no network across hosts"


def _with_labels(labels: Labels) -> str:
    return f", on hosts with {', '.join(map(show_label, labels))}" if labels else ""


def _describe_host(name: HostName, host: HostSeen, gang: Gang, site: Site) -> str:
    held = Resources(host.capacity.cpus, host.capacity.mem, len(host.capacity.gpus))
    lacking = [show_label(label) for label in gang.whole.labels if not site.suits((label,))]
    without = f", and not {', '.join(lacking)}" if lacking else ""
    return f"host {name} has {describe(held)}{without}"
