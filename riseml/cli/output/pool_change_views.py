"""The results of the commands that change the pool, as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun
from riseml.project.messages import format_size

if TYPE_CHECKING:
    from riseml import wire

_KEYS = (Column("KEY"), Column("FINGERPRINT"), Column("PINNED"))
_PINNED = {"yes": "yes", "no": "no", "other": "no, another key is"}
_FINDINGS = (Column("HOST"), Column("CHECK"), Column("OUTCOME"), Column("FOUND", folds=True))
_MEMBERS = (Column("HOST"), Column("SWARM", folds=True))
_MEMBERSHIPS = {
    "created": "made the swarm",
    "joined": "joined the swarm",
    "member": "was in the swarm already",
    "promoted": "manages the swarm now",
    "demoted": "does not manage the swarm any more",
    "recovered": "manages the swarm alone, until others answer",
    "silent": "does not answer, and was left as it is",
}
_DEPARTURES = {
    "left": "It has left the swarm.",
    "removed": "The swarm has forgotten it. When it answers again, `docker swarm leave --force` there ends its part.",
    "shared": "It stays in the swarm: another riseml server works there. `docker swarm leave` there ends that.",
    "services": "It stays in the swarm, which runs services: `docker swarm leave` there ends that.",
    "kept": "It stays in the swarm, which could not be changed: see `riseml server logs`.",
}


def list_keys(found: wire.HostKeys, style: Style) -> list[str]:
    """Return a table of the keys that a host shows to ssh."""
    return build_table(
        _KEYS, [[key["kind"], key["fingerprint"], _PINNED[key["pinned"]]] for key in found["keys"]], style
    )


def list_findings(findings: Sequence[wire.PoolFinding], style: Style) -> list[str]:
    """Return a table of what checks found."""
    rows = [[one["host"] or "pool.yml", one["topic"], one["outcome"], one["message"]] for one in findings]
    return build_table(_FINDINGS, rows, style)


def list_members(members: Sequence[wire.PoolMember], style: Style) -> list[str]:
    """Return a table of what was done with each host for the swarm."""
    return build_table(_MEMBERS, [[one["host"], _MEMBERSHIPS[one["membership"]]] for one in members], style)


def describe_recovery(found: wire.PoolRecovery) -> list[str]:
    """Return what a new majority of the swarm costs."""
    lost = ", ".join(found["lost"]) or "no host"
    lines = ["A new majority of the swarm costs this:"]
    if found["keeps_swarm"]:
        lines.append(f"  {found['leader']} manages the swarm alone at first, and keeps its members and networks")
        lines.append(f"  managers that do not answer ({lost}) lose their votes; they join again when they are back")
        lines.append("  if more than half of the managers live and are only cut off, there will be two swarms:")
        lines.append("    mend the network instead")
    else:
        lines.append(f"  no manager answers ({lost} does not): the members leave the swarm and make a new one")
        lines.append("  a manager that returns needs `docker swarm leave --force`, then `riseml pool join`")
    if found["breaks"]:
        lines.append(f"  the jobs of these experiments lose the network between them: {', '.join(found['breaks'])}")
    else:
        lines.append("  no experiment runs across hosts, so that none is disturbed")
    return [clean_text(line) for line in lines]


def describe_added(found: wire.AddedHost) -> list[str]:
    """Return the properties of a host, and whether the command added it."""
    gpus = f" and {count_noun(found['gpus'], 'GPU')}" if found["gpus"] else ""
    amount = f"{found['cpus']:g} cores, {found['mem_mib'] / 1024:.1f} GiB of memory{gpus}"
    lines = ["", f"{found['name']}: {found['engine']}, {amount}."]
    lines += [f"{one['host']} {_MEMBERSHIPS[one['membership']]}." for one in found["members"]]
    if found["state"] == "added":
        lines.append(f"{found['name']} is in {found['file']} and takes jobs:")
    else:
        lines.append(f"It fits. Nothing was changed; without --dry-run {found['file']} gets these lines:")
    return [*map(clean_text, lines), *(clean_text(line) for line in found["entry"].splitlines())]


def describe_removed(found: wire.RemovedHost) -> list[str]:
    """Return what was done with a host."""
    name = found["name"]
    if not found["removed"]:
        return [clean_text(f"{name} would be removed from {found['file']}. Nothing was changed.")]
    lost = f" {count_noun(len(found['jobs']), 'job')} there counts as lost soon." if len(found["jobs"]) == 1 else ""
    if len(found["jobs"]) > 1:
        lost = f" {count_noun(len(found['jobs']), 'job')} there count as lost soon."
    departure = _DEPARTURES.get(found.get("departure", ""), "")  # a server of an earlier version does not say
    lines = [f"{name} is not in {found['file']} any more, and gets no jobs.{lost}", departure]
    return [clean_text(line) for line in lines if line]


def describe_remains(found: wire.RemovedHost) -> list[str]:
    """Return what stays on a host that is removed."""
    remains = [f"  {clean_text(line)}" for line in _list_remains(found)]
    return [f"What stays on {clean_text(found['name'])}:", *remains] if remains else []


def _list_remains(found: wire.RemovedHost) -> Iterator[str]:
    if not found["answers"]:
        yield "it does not answer: riseml does not know"
    if found["containers"] or found["networks"]:
        yield f"{count_noun(found['containers'], 'container')} and {count_noun(found['networks'], 'network')} of riseml"
    if found["environments"]:
        yield f"{count_noun(found['environments'], 'environment')} of riseml, {format_size(found['size'])}"
    if not found["shared_output"]:
        yield f"the outputs of its jobs, in {found['output']}"
    if found["known_hosts"]:
        yield f"its host key in {found['known_hosts']}, on the machine of the server"
