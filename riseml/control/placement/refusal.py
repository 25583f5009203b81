"""Why a pool could not hold a gang even if nothing ran: such an experiment is refused when it is submitted."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from riseml.base.names import HostName, JobName
from riseml.base.states import Network
from riseml.control.observation import Observation
from riseml.control.placement.candidates import CandidateHost, find_candidates
from riseml.control.placement.fit import Gang, find_hosts, make_gang
from riseml.control.placement.free import free_after
from riseml.control.placement.gpu_models import describe_models, describe_wanted, wants_models
from riseml.control.placement.hand_over import describe_cluster_refusal
from riseml.model import HostObservation
from riseml.spec.config.types import Labels, Resources

_ANY_LINK = "any"
_MOST_LABELS = 8  # that a hint names


def describe_refusal(needs: Mapping[JobName, Resources], observation: Observation) -> tuple[str, ...]:
    """Return why the hosts could not hold the gang even if nothing ran on them; drained and silent hosts count.

    Returns:
        What the gang needs, then a sentence for each host; empty when the hosts could hold it.
    """
    cluster_reasons = describe_cluster_refusal(needs, observation)
    if any(host.queue is not None for host in observation.hosts.values()):
        return cluster_reasons
    gang = make_gang(tuple(needs.values()))
    candidates = find_candidates(observation)
    room = {name: free_after(host.capacity, ()) for name, host in observation.hosts.items()}
    if find_hosts(gang, room, candidates) is not None:
        return ()
    subject = "the job needs" if gang.size == 1 else f"the {gang.size} jobs together need"
    request = f"{subject} {describe_resources(gang.whole)}{_with_models(gang)}{_with_labels(gang.whole.labels)}"
    linked = {name: replace(candidate, link=_ANY_LINK) for name, candidate in candidates.items()}
    several = gang.size > 1 and find_hosts(gang, room, linked) is not None
    unlinked = (f"it needs several hosts, but {_describe_missing_link(observation)}",) if several else ()
    return (
        request,
        *unlinked,
        *_describe_unknown_models(gang, candidates),
        *(_describe_host(name, host, gang, candidates[name]) for name, host in sorted(observation.hosts.items())),
    )


def list_possible_hosts(needs: Iterable[Resources], observation: Observation) -> frozenset[HostName]:
    """Return the hosts that could hold one of the jobs if nothing ran on them; no drained ones."""
    gangs = [make_gang((need,)) for need in frozenset(needs)]
    candidates = find_candidates(observation)
    return frozenset(
        name
        for name, host in observation.hosts.items()
        if host.taking
        and (
            host.queue is not None
            or any(
                find_hosts(gang, {name: free_after(host.capacity, ())}, {name: candidates[name]}) is not None
                for gang in gangs
                if name in candidates
            )
        )
    )


def suggest_remedy(needs: Mapping[JobName, Resources], observation: Observation) -> str:
    """Return what to do about a gang that no hosts could hold: the labels that no host has, or fewer resources."""
    requested = sorted({label for need in needs.values() for label in need.labels})
    hosts = {name: dict(host.labels) for name, host in sorted(observation.hosts.items()) if host.queue is None}
    missing = [label for label in requested if not any(labels.get(label[0]) == label[1] for labels in hosts.values())]
    if not hosts or not requested:
        return "lower train.resources or the number of workers, or add a host"
    together = next((need.labels for need in needs.values() if not _has_host(hosts.values(), need.labels)), ())
    if together and not missing:
        return f"no host has {' and '.join(map(show_label, together))} together: correct train.resources.labels"
    if not missing:
        return "lower train.resources or the number of workers, or add a host"
    examples = _list_labels(hosts, {name for name, _ in missing})
    listed = f"; the hosts have {', '.join(examples)}" if examples else ""
    subject = f"the label {show_label(missing[0])}" if len(missing) == 1 else ", ".join(map(show_label, missing))
    return f"no host has {subject}{listed}: correct train.resources.labels, or give a host the label in pool.yml"


def _list_labels(hosts: Mapping[HostName, Mapping[str, str]], names: Container[str]) -> list[str]:
    """Return `gpu=a100 (h1, h2)` for the labels with these names; for all labels when no host has such a name."""
    hosts_with: dict[tuple[str, str], list[HostName]] = {}
    for host, labels in hosts.items():
        for label in labels.items():
            hosts_with.setdefault(label, []).append(host)
    same = [label for label in hosts_with if label[0] in names]
    return [f"{show_label(label)} ({', '.join(hosts_with[label])})" for label in (same or hosts_with)][:_MOST_LABELS]


def _has_host(hosts: Iterable[Mapping[str, str]], labels: Labels) -> bool:
    """Return True when a host has all of these labels."""
    return any(all(host.get(name) == value for name, value in labels) for host in hosts)


def describe_resources(need: Resources) -> str:
    """Return `2 cpus, 512 MiB and 1 gpus`."""
    return f"{need.cpus:g} cpus, {need.mem} MiB and {need.gpus} gpus"


def show_label(label: tuple[str, str]) -> str:
    """Return `gpu=a100`."""
    return "=".join(label)


def _describe_missing_link(observation: Observation) -> str:
    if not observation.shared_output:
        return "they share no output"
    if observation.network is Network.OVERLAY:
        return "they are not in one swarm that has a manager"
    if observation.network is Network.HOST:
        return "they have no addresses"
    return "the pool has no network across hosts"


def _with_labels(labels: Labels) -> str:
    return f", on hosts with {', '.join(map(show_label, labels))}" if labels else ""


def _with_models(gang: Gang) -> str:
    """Return which GPUs the jobs accept: ` (a100 with 40960 MiB or more)`."""
    models = dict.fromkeys(describe_wanted(kind.need) for kind in gang.kinds if wants_models(kind.need))
    return f" ({', '.join(models)})" if models else ""


def _describe_unknown_models(gang: Gang, candidates: Mapping[HostName, CandidateHost]) -> tuple[str, ...]:
    """Return a sentence when the jobs need a model of GPU and no host knows the models of its GPUs."""
    if not any(wants_models(kind.need) for kind in gang.kinds) or any(
        candidate.models for candidate in candidates.values()
    ):
        return ()
    return ("no host knows the models of its GPUs, and `riseml pool check` says why",)


def _describe_host(name: HostName, host: HostObservation, gang: Gang, candidate: CandidateHost) -> str:
    capacity = Resources(host.capacity.cpus, host.capacity.mem, len(host.capacity.gpus))
    lacking = [show_label(label) for label in gang.whole.labels if not candidate.has_labels((label,))]
    without = f", and not {', '.join(lacking)}" if lacking else ""
    kinds = [kind.need for kind in gang.kinds if wants_models(kind.need)]
    models = f" ({describe_models(candidate.models, candidate.gpus)})" if kinds and candidate.gpus else ""
    return f"host {name} has {describe_resources(capacity)}{models}{without}"
