"""The results of the commands that change the pool, as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun
from riseml.files.project.messages import format_size

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


def list_keys(keys: wire.HostKeys, style: Style) -> list[str]:
    """Return a table of the keys that a host shows to ssh."""
    return build_table(
        _KEYS,
        [[key["kind"], key["fingerprint"], _PINNED.get(key["pinned"], key["pinned"])] for key in keys["keys"]],
        style,
    )


def list_findings(findings: Sequence[wire.PoolFinding], style: Style) -> list[str]:
    """Return a table of what checks found."""
    rows = [
        [finding["host"] or "pool.yml", finding["topic"], finding["outcome"], finding["message"]]
        for finding in findings
    ]
    return build_table(_FINDINGS, rows, style)


def list_members(members: Sequence[wire.PoolMember], style: Style) -> list[str]:
    """Return a table of what was done with each host for the swarm."""
    return build_table(_MEMBERS, [[member["host"], _describe_membership(member)] for member in members], style)


def _describe_membership(member: wire.PoolMember) -> str:
    return _MEMBERSHIPS.get(member["membership"], member["membership"])  # a newer server may have a further one


def describe_recovery(recovery: wire.PoolRecovery) -> list[str]:
    """Return what a new majority of the swarm costs."""
    lost = ", ".join(recovery["lost"]) or "no host"
    lines = ["A new majority of the swarm costs this:"]
    if recovery["keeps_swarm"]:
        lines.append(f"  {recovery['leader']} manages the swarm alone at first, and keeps its members and networks")
        lines.append(f"  managers that do not answer ({lost}) lose their votes; they join again when they are back")
        lines.append("  if more than half of the managers live and are only cut off, there will be two swarms:")
        lines.append("    mend the network instead")
    else:
        lines.append(f"  no manager answers ({lost} does not): the members leave the swarm and make a new one")
        lines.append("  a manager that returns needs `docker swarm leave --force`, then `riseml pool join`")
    if recovery["breaks"]:
        lines.append(f"  the jobs of these experiments lose the network between them: {', '.join(recovery['breaks'])}")
    else:
        lines.append("  no experiment runs across hosts, so that none is disturbed")
    return [clean_text(line) for line in lines]


def describe_added(added: wire.AddedHost) -> list[str]:
    """Return the properties of a host, and whether the command added it."""
    gpus = f" and {count_noun(added['gpus'], 'GPU')}" if added["gpus"] else ""
    amount = f"{added['cpus']:g} cores, {added['mem_mib'] / 1024:.1f} GiB of memory{gpus}"
    lines = ["", f"{added['name']}: {added['engine']}, {amount}."]
    lines += [f"{member['host']} {_describe_membership(member)}." for member in added["members"]]
    if added["state"] == "added":
        lines.append(f"{added['name']} is in {added['file']} and takes jobs:")
    else:
        lines.append(f"It fits. Nothing was changed; without --dry-run {added['file']} gets these lines:")
    return [*map(clean_text, lines), *(clean_text(line) for line in added["entry"].splitlines())]


def describe_removed(removed: wire.RemovedHost) -> list[str]:
    """Return what was done with a host."""
    name = removed["name"]
    if not removed["removed"]:
        return [clean_text(f"{name} would be removed from {removed['file']}. Nothing was changed.")]
    lost = f" {count_noun(len(removed['jobs']), 'job')} there counts as lost soon." if len(removed["jobs"]) == 1 else ""
    if len(removed["jobs"]) > 1:
        lost = f" {count_noun(len(removed['jobs']), 'job')} there count as lost soon."
    departure = _DEPARTURES.get(removed.get("departure", ""), "")  # a server of an earlier version does not say
    lines = [f"{name} is not in {removed['file']} any more, and gets no jobs.{lost}", departure]
    return [clean_text(line) for line in lines if line]


def describe_remains(removed: wire.RemovedHost) -> list[str]:
    """Return what stays on a host that is removed."""
    remains = [f"  {clean_text(line)}" for line in _list_remains(removed)]
    return [f"What stays on {clean_text(removed['name'])}:", *remains] if remains else []


def _list_remains(removed: wire.RemovedHost) -> Iterator[str]:
    if not removed["answers"]:
        yield "it does not answer: riseml does not know"
    if removed["containers"] or removed["networks"]:
        containers = count_noun(removed["containers"], "container")
        yield f"{containers} and {count_noun(removed['networks'], 'network')} of riseml"
    if removed["environments"]:
        yield f"{count_noun(removed['environments'], 'environment')} of riseml, {format_size(removed['size'])}"
    if not removed["shared_output"]:
        yield f"the outputs of its jobs, in {removed['output']}"
    if removed["known_hosts"]:
        yield f"its host key in {removed['known_hosts']}, on the machine of the server"
