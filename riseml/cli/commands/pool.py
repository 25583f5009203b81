"""`pool`: the hosts that experiments may use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.commands.files import JsonOption
from riseml.cli.output.text import Column, plural
from riseml.cli.output.views import show_host_state, show_uses, warn_of_hosts
from riseml.cli.tools import Exit, Tools
from riseml.errors import UsageError

if TYPE_CHECKING:
    from riseml import wire

pool = typer.Typer(help="Show, check, join, drain and trust the hosts of the pool.")

_NAME = re.compile(r"[^/\s]{1,100}")


def _read_host(text: str) -> str:
    if not _NAME.fullmatch(text) or text in (".", ".."):
        raise typer.BadParameter(f"{text[:100]!r} is no name of a host; `riseml pool` shows the hosts")
    return text


HostArgument = Annotated[str, typer.Argument(help="Name of a host in pool.yml.", metavar="HOST", callback=_read_host)]

_HOSTS = (
    Column("HOST", shrinks=True),
    Column("STATE"),
    Column("CPUS", right=True),
    Column("MEM", right=True),
    Column("GPUS", right=True),
    Column("SWARM"),
    Column("RUNS", shrinks=True),
)
_KEYS = (Column("KEY"), Column("FINGERPRINT"), Column("PINNED"))
_PINNED = {"yes": "yes", "no": "no", "other": "no, another one is"}
_FINDINGS = (Column("HOST"), Column("CHECK"), Column("OUTCOME"), Column("FOUND", folds=True))
_MEMBERS = (Column("HOST"), Column("SWARM"))
_SAYS = {"created": "made the swarm", "joined": "joined", "member": "was a member already"}


@pool.callback(invoke_without_command=True)
def show_pool(context: typer.Context, *, json: JsonOption = False) -> None:
    """Show the hosts: their state, what they hold, what is in use, and what runs where."""
    if context.invoked_subcommand is not None:
        return
    tools: Tools = context.obj
    with tools.connect() as client:
        found = client.pool()
    if json:
        tools.render.json(found)
        return
    tools.render.print(*_heads(found), "")
    tools.render.table(_HOSTS, [_row(host) for host in found["hosts"]])
    warn_of_hosts(tools.render, found["hosts"])
    if found["trouble"]:
        tools.render.warn(f"what now stands in pool.yml is not in force: {found['trouble']}")


@pool.command("check")
def check(context: typer.Context, *, json: JsonOption = False) -> None:
    """Check connections, clocks, swarm and shared storage of all hosts."""
    tools: Tools = context.obj
    with tools.connect() as client:
        findings = client.check_pool()
    if json:
        tools.render.json({"findings": findings})
    else:
        rows = [[one["host"], one["topic"], one["outcome"], one["message"]] for one in findings]
        tools.render.table(_FINDINGS, rows)
    bad = sum(one["outcome"] == "failed" for one in findings)
    if bad:
        tools.render.say(f"{plural(bad, 'check')} failed.")
        raise Exit(1)


@pool.command("join")
def join(context: typer.Context, *, json: JsonOption = False) -> None:
    """Make one Docker swarm of the hosts, so that a gang may span them.

    Hosts that are in it stay as they are.
    """
    tools: Tools = context.obj
    with tools.connect() as client:
        members = client.join_pool()
    if json:
        tools.render.json({"members": members})
    else:
        tools.render.table(_MEMBERS, [[one["host"], _SAYS[one["membership"]]] for one in members])


@pool.command("trust")
def trust(
    context: typer.Context,
    host: HostArgument,
    *,
    fingerprint: Annotated[
        list[str] | None,
        typer.Option("--fingerprint", metavar="SHA256:...", help="Pin the key with this fingerprint; repeatable."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Pin the ssh host key of a host.

    Its fingerprint is shown first: compare it with what the host's owner says. `--fingerprint` needs no answer.
    """
    tools: Tools = context.obj
    with tools.connect() as client:
        found = client.pin_host(host, fingerprint) if fingerprint else client.host_keys(host)
        if json:
            tools.render.json(found)
            return
        tools.render.table(_KEYS, [[key["kind"], key["fingerprint"], _PINNED[key["pinned"]]] for key in found["keys"]])
        if fingerprint is None and any(key["pinned"] != "yes" for key in found["keys"]):
            shown = [key["fingerprint"] for key in found["keys"]]
            _ask_owner(tools, host, shown)
            found = client.pin_host(host, shown)
    tools.render.print(f"Pinned in {found['known_hosts']}.")


def _ask_owner(tools: Tools, host: str, fingerprints: list[str]) -> None:
    """On the host itself, `ssh-keygen -lf` of a file in /etc/ssh shows the same fingerprint."""
    if not tools.asks:
        raise UsageError(
            f"nobody is here to compare the fingerprints of {host}",
            f"once you know that it is right: `riseml pool trust {host} --fingerprint {fingerprints[0]}`",
        )
    if not typer.confirm(f"Is this what {host} has? `ssh-keygen -l` shows it there.", err=True):
        raise Exit(0)


@pool.command("drain")
def drain(context: typer.Context, host: HostArgument, *, json: JsonOption = False) -> None:
    """Give a host nothing new; what runs there runs on."""
    tools: Tools = context.obj
    with tools.connect() as client:
        found = client.drain_host(host)
    if json:
        tools.render.json(found)
        return
    count = len(found["jobs"])
    left = f"{plural(count, 'job')} still {'runs' if count == 1 else 'run'} there." if count else "Nothing runs there."
    tools.render.print(f"{host} gets no new jobs. {left}", f"`riseml pool resume {host}` takes this back.")


@pool.command("resume")
def resume(context: typer.Context, host: HostArgument, *, json: JsonOption = False) -> None:
    """Let a drained host take new jobs again."""
    tools: Tools = context.obj
    with tools.connect() as client:
        found = client.resume_host(host)
    if json:
        tools.render.json(found)
        return
    tools.render.print(f"{host} takes new jobs again.")


def _heads(found: wire.PoolView) -> Iterator[str]:
    lacking = "pool.yml cannot be used" if found["trouble"] else "no pool.yml is in use"
    yield f"Pool: {found['file'] or f'this machine ({lacking})'}"
    if len(found["hosts"]) > 1:
        yield f"Network across hosts: {found['network']}"
    shared = "" if found["shared_output"] else " (not shared: a gang gets one host)"
    yield f"Output: {found['output']}{shared}"
    yield f"Data: {found['data']}"


def _row(host: wire.HostView) -> list[str]:
    return [host["name"], show_host_state(host), *show_uses(host), host["swarm"] or "-", " ".join(host["jobs"]) or "-"]
