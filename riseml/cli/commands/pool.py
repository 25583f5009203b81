"""`pool`: the hosts that experiments may use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Refused, UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext, Exit
from riseml.cli.help_text import add_subcommand
from riseml.cli.output.text import clean_text, count_noun

if TYPE_CHECKING:
    from riseml.client.server_client import Client

pool_app = typer.Typer(help="Show the hosts of the pool; add, remove and check them.")

_HOST_NAME = re.compile(r"[^/\s]{1,100}")


def _check_host_name(text: str) -> str:
    if not _HOST_NAME.fullmatch(text) or text in (".", ".."):
        raise typer.BadParameter(f"{text[:100]!r} is not the name of a host; `riseml pool` shows the hosts")
    return text


HostArgument = Annotated[
    str, typer.Argument(help="Name of a host in pool.yml.", metavar="HOST", callback=_check_host_name)
]
NewHostArgument = Annotated[
    str,
    typer.Argument(
        help="The name that you give the host: pool.yml, `riseml status` and the label `host` have it.",
        metavar="HOST",
        callback=_check_host_name,
    ),
]


@pool_app.callback(invoke_without_command=True)
def show_pool(context: typer.Context, *, json: JsonOption = False) -> None:
    """Show the hosts: their state, what they hold, what is in use, and what runs where."""
    from riseml.cli.output.host_views import list_file_warnings, list_host_warnings, list_pool

    if context.invoked_subcommand is not None:
        return
    command: CommandContext = context.obj
    with command.connect() as client:
        pool = client.get_pool()
    if json:
        command.printer.print_json(pool)
        return
    command.printer.print_lines(list_pool(pool, command.printer.style))
    for warning in list_host_warnings(pool["hosts"]):
        command.printer.warn(warning)
    if pool.get("swarm_trouble"):  # a server of an earlier version does not say
        command.printer.warn(pool["swarm_trouble"])
    for warning in list_file_warnings(pool):
        command.printer.warn(warning)


@add_subcommand(pool_app, "check", "riseml pool check")
def check_pool(context: typer.Context, *, json: JsonOption = False) -> None:
    """Check connections, clocks, swarm and shared storage of all hosts."""
    from riseml.cli.output.pool_change_views import list_findings

    command: CommandContext = context.obj
    with command.connect() as client:
        findings = client.check_pool()
    if json:
        command.printer.print_json({"findings": findings})
    else:
        command.printer.print_lines(list_findings(findings, command.printer.style))
    failed = sum(finding["outcome"] == "failed" for finding in findings)
    if failed:
        command.printer.say(f"{count_noun(failed, 'check')} failed.")
        raise Exit(1)


@add_subcommand(pool_app, "join", "riseml pool join")
def join_pool(context: typer.Context, *, json: JsonOption = False) -> None:
    """Make one Docker swarm of the hosts, so that the jobs of an experiment may run on several hosts.

    It also repairs a swarm: afterwards it has one manager for up to two hosts, three for up to six, and five for more,
    and hosts that do not answer manage it only where no other can.
    """
    from riseml.cli.output.pool_change_views import list_members

    command: CommandContext = context.obj
    with command.connect() as client:
        members = client.join_pool()
    if json:
        command.printer.print_json({"members": members})
    else:
        command.printer.print_lines(list_members(members, command.printer.style))


@add_subcommand(pool_app, "recover", "riseml pool recover --host gpu2")
def recover_pool(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(metavar="HOST", help="The host that manages the swarm at first.")] = "",
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Give the Docker swarm a new majority, when too few of its managers live for a leader.

    The command says what that costs, and asks. Hosts that return later join the swarm by themselves.
    """
    from riseml.cli.output.pool_change_views import describe_recovery, list_members

    command: CommandContext = context.obj
    with command.connect() as client:
        recovery = client.recover_pool(host, dry_run=True)
        if not yes:
            command.printer.say(*describe_recovery(recovery))
            if json or not command.asks:
                raise Refused("no user can agree to that here: nothing was changed", "`--yes` agrees")
            if not command.ask(f"Make the new majority with {recovery['leader']}?"):
                raise Exit(0)
        recovery = client.recover_pool(recovery["leader"], dry_run=False)
    if json:
        command.printer.print_json(recovery)
    else:
        command.printer.print_lines(list_members(recovery["members"], command.printer.style))


@add_subcommand(pool_app, "trust", "riseml pool trust gpu1")
def trust_host(
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

    The command shows the key's fingerprint and asks: compare it with what the host's owner says. With `--fingerprint`
    it does not ask.
    """
    from riseml.cli.output.pool_change_views import list_keys

    command: CommandContext = context.obj
    with command.connect() as client:
        keys = client.pin_host(host, fingerprint) if fingerprint else client.get_host_keys(host)
        if json:
            command.printer.print_json(keys)
            return
        command.printer.print_lines(list_keys(keys, command.printer.style))
        if fingerprint is None and any(key["pinned"] != "yes" for key in keys["keys"]):
            fingerprints = [key["fingerprint"] for key in keys["keys"]]
            _confirm_fingerprints(command, host, fingerprints)
            keys = client.pin_host(host, fingerprints)
    command.printer.print_lines([clean_text(f"Pinned in {keys['known_hosts']}.")])


def _confirm_fingerprints(command: CommandContext, host: str, fingerprints: list[str]) -> None:
    """Ask whether the fingerprints are right; on the host, `ssh-keygen -lf` of a file in /etc/ssh shows them.

    Raises:
        UsageError: standard input is not a terminal.
        Exit: the user says no.
    """
    if not command.asks:
        raise UsageError(
            f"no user can compare the fingerprints of {host}: standard input is not a terminal",
            f"if you know that this one is right: `riseml pool trust {host} --fingerprint {fingerprints[0]}`",
        )
    if not command.ask(f"Is this what {host} has? `ssh-keygen -l` shows it there."):
        raise Exit(0)


def _warn_of_file(command: CommandContext, client: Client) -> None:
    """Warn when pool.yml has problems, or has lost hosts on which jobs run."""
    from riseml.cli.output.host_views import list_file_warnings

    for warning in list_file_warnings(client.get_pool()):
        command.printer.warn(warning)


@add_subcommand(pool_app, "drain", "riseml pool drain gpu1")
def drain_host(context: typer.Context, host: HostArgument, *, json: JsonOption = False) -> None:
    """Give a host no new jobs; jobs that run there continue."""
    command: CommandContext = context.obj
    with command.connect() as client:
        drained = client.drain_host(host)
        _warn_of_file(command, client)
    if json:
        command.printer.print_json(drained)
        return
    count = len(drained["jobs"])
    jobs = "No job runs there."
    if count:
        jobs = f"{count_noun(count, 'job')} still {'runs' if count == 1 else 'run'} there."
    command.printer.print_lines([f"{host} gets no new jobs. {jobs}", f"`riseml pool resume {host}` takes this back."])


@add_subcommand(pool_app, "resume", "riseml pool resume gpu1")
def resume_host(context: typer.Context, host: HostArgument, *, json: JsonOption = False) -> None:
    """Let a drained host take new jobs again."""
    command: CommandContext = context.obj
    with command.connect() as client:
        resumed = client.resume_host(host)
        _warn_of_file(command, client)
    if json:
        command.printer.print_json(resumed)
        return
    command.printer.print_lines([f"{host} takes new jobs again."])
