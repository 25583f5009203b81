"""`pool add` and `pool remove`: change which hosts experiments may use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from riseml.base.errors import Refused, UsageError
from riseml.cli.commands.options import JsonOption, OldForceOption, accept_old_letter
from riseml.cli.commands.pool import HostArgument, NewHostArgument, pool_app
from riseml.cli.context import CommandContext, Exit
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client

_HostKeyOption = Annotated[
    list[str] | None,
    typer.Option("--host-key", metavar="SHA256:...", help="Trust the host key with this fingerprint; repeatable."),
]
_GpusOption = Annotated[
    str | None, typer.Option("--gpus", metavar="IDS", help="What jobs may use: all (the default), none, or ids: 0,1.")
]
_LabelOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="What riseml.yml can require; repeatable.")
]
_DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check everything and change nothing.")]
_UrlArgument = Annotated[
    str, typer.Argument(help="ssh://user@host[:port], tcp://host:port or unix:///path.", metavar="URL")
]
_AddressOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Where the other hosts reach it. Default: that of URL."),
]
_CpusOption = Annotated[float | None, typer.Option(metavar="N", help="Cores that jobs may use. Default: all.")]
_MemOption = Annotated[str | None, typer.Option(metavar="SIZE", help="Memory that jobs may use: 120GiB. Default: all.")]
_IdentityOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Private key for ssh.")]
_TlsOption = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="ca.pem, cert.pem and key.pem for a tcp:// engine.")
]
_InsecureOption = Annotated[bool, typer.Option("--insecure", help="A tcp:// engine without TLS.")]
_ForceOption = Annotated[bool, typer.Option("--force", help="Add it although a check fails.")]


@add_subcommand(
    pool_app,
    "add",
    "riseml pool add gpu1 ssh://me@gpu1",
    "riseml pool add gpu2 ssh://me@gpu2:2222 --gpus 0,1 --label gpu=a100",
)
def add_host(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    host: NewHostArgument,
    url: _UrlArgument,
    *,
    host_key: _HostKeyOption = None,
    address: _AddressOption = None,
    gpus: _GpusOption = None,
    label: _LabelOption = None,
    cpus: _CpusOption = None,
    mem: _MemOption = None,
    identity: _IdentityOption = None,
    tls: _TlsOption = None,
    insecure: _InsecureOption = False,
    force: _ForceOption = False,
    dry_run: _DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Check a host, make it a member of the swarm, and write it into pool.yml.

    The command shows the ssh host key and asks whether it is right, unless `--host-key` names it. A host that does not
    answer, or does not fit, changes nothing. A clock that is more than 30 s wrong does not fit.
    """
    command: CommandContext = context.obj
    if cpus is not None and cpus <= 0:
        raise UsageError(f"--cpus {cpus:g} leaves no core for jobs", "`riseml pool drain` keeps new jobs from a host")
    values: dict[str, object] = {"name": host, "url": url, "address": address, "cpus": cpus, "mem": mem}
    values |= {"insecure": insecure, "labels": dict(map(_split_label, label or ()))}
    values |= {"identity": _make_absolute(command, identity), "tls": _make_absolute(command, tls)}
    values |= {"fingerprints": host_key, "force": force, "dry_run": dry_run}
    new = cast("wire.NewHost", {key: value for key, value in values.items() if value} | _read_gpus(gpus))
    with command.connect() as client:
        added = _add_trusted(command, client, new, quiet=json)
    command.printer.print_json(added) if json else _print_added(command, added)


def _add_trusted(command: CommandContext, client: Client, new: wire.NewHost, *, quiet: bool) -> wire.AddedHost:
    """Add a host; ask the user for its key first when the server does not know it.

    Raises:
        Refused: standard input is not a terminal.
        Exit: the user says no.
    """
    from riseml.cli.output.pool_change_views import list_keys

    added = client.add_host(new)
    if added["state"] != "untrusted" or added["keys"] is None:
        return added
    keys = added["keys"]["keys"]
    if quiet or not command.asks:
        raise Refused(
            f"the host key of {new['name']} is not pinned, and no user can compare it here: nothing was added",
            f"if you know that it is right: `--host-key {keys[0]['fingerprint']}`",
        )
    command.printer.print_lines(list_keys(added["keys"], command.printer.style))
    if not command.ask(f"Is this what {new['name']} has? `ssh-keygen -l` shows it there."):
        raise Exit(0)
    return client.add_host({**new, "fingerprints": [key["fingerprint"] for key in keys]})


def _print_added(command: CommandContext, added: wire.AddedHost) -> None:
    from riseml.cli.output.pool_change_views import describe_added, list_findings

    command.printer.print_lines(list_findings(added["findings"], command.printer.style))
    command.printer.print_lines(describe_added(added))
    for finding in added["findings"]:
        if (finding["topic"], finding["outcome"]) == ("clock", "note"):
            command.printer.warn(f"the clock of {finding['host']} is {finding['message']}")


def _read_gpus(text: str | None) -> dict[str, object]:
    """Return the GPUs that jobs may use, as pool.yml writes them."""
    if text is None or text == "all":
        return {} if text is None else {"gpus": "all"}
    return {"gpus": [] if text == "none" else [gpu.strip() for gpu in text.split(",")]}


def _make_absolute(command: CommandContext, path: Path | None) -> str | None:
    """Return an absolute path: the server has another working directory."""
    return None if path is None else str(command.folder / path.expanduser())


def _split_label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--label {text!r} is not a label", "write it like `--label gpu=a100`")
    return name, value


@add_subcommand(pool_app, "remove", "riseml pool remove gpu1 --dry-run")
def remove_host(
    context: typer.Context,
    host: HostArgument,
    *,
    force: Annotated[bool, typer.Option("--force", help="Do not ask, and remove it although jobs run there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    json: JsonOption = False,
    old_force: OldForceOption = False,
) -> None:
    """Take a host out of pool.yml. Nothing on the host changes; the command says what stays there."""
    from riseml.cli.output.pool_change_views import describe_remains, describe_removed

    command: CommandContext = context.obj
    force = accept_old_letter(command, "-f", "--force", is_given=old_force) or force
    with command.connect() as client:
        removed = client.remove_host(host, force=force, dry_run=True)
        if not dry_run:
            if not (force or json) and command.asks:
                command.printer.print_lines(describe_remains(removed))
                if not command.ask(f"Remove {host} from {removed['file']}?"):
                    raise Exit(0)
            removed = client.remove_host(host, force=force, dry_run=False)
    if json:
        command.printer.print_json(removed)
        return
    command.printer.print_lines([*describe_removed(removed), *describe_remains(removed)])
