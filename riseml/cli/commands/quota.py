"""`quota`: what users and team projects may use, and what they use now; an admin sets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from riseml.base.errors import UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

quota_app = typer.Typer(help="Show what you may use and what you use; an admin sets quotas.")

UserOption = Annotated[str | None, typer.Option("--user", metavar="USER", help="The quota of USER.")]
ProjectOption = Annotated[str | None, typer.Option("--project", metavar="PROJECT", help="The quota of a team project.")]

_MOST_COUNT = 1_000_000
_FORMS = "write a number, `none` (no limit) or `default` (as server.yml says)"


@quota_app.callback(invoke_without_command=True)
def show_own_quota(context: typer.Context, *, json: JsonOption = False) -> None:
    """Show what you may use and what you use; an admin sets quotas.

    An experiment above a quota waits, and `riseml explain` says which quota holds it and when it frees. On a server
    with one user there are no quotas.
    """
    if context.invoked_subcommand is None:
        _show(context.obj, None, None, json=json)


@add_subcommand(quota_app, "show", "riseml quota show --user paul")
def show_quota(
    context: typer.Context, *, user: UserOption = None, project: ProjectOption = None, json: JsonOption = False
) -> None:
    """Show the quota of a user or a team project, and what it has in use.

    Without a name it shows yours and those of your projects; an admin sees all.
    """
    _show(context.obj, user, project, json=json)


@add_subcommand(
    quota_app,
    "set",
    "riseml quota set --user paul --gpus 4 --running 10",
    "riseml quota set --project vision --mem none",
)
def set_quota(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    *,
    user: UserOption = None,
    project: ProjectOption = None,
    gpus: Annotated[str | None, typer.Option(metavar="N", help="GPUs in use at the same time.")] = None,
    cpus: Annotated[str | None, typer.Option(metavar="CORES", help="Cores in use at the same time.")] = None,
    mem: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory in use at the same time: 64GiB.")] = None,
    running: Annotated[str | None, typer.Option(metavar="N", help="Experiments that run at the same time.")] = None,
    waiting: Annotated[str | None, typer.Option(metavar="N", help="Experiments that wait.")] = None,
    project_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="Files of projects: 10GiB.")] = None,
    log_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="Logs: 1GiB.")] = None,
    output_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="Outputs: 500GiB.")] = None,
    weight: Annotated[
        float | None,
        typer.Option(metavar="W", help="Divide the hours of a project's experiments by W, for the order of the queue."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Set what a user or a team project may use; for admins.

    A value is a number, `none` for no limit, or `default` for what server.yml says. What is not named stays.
    """
    if (user is None) == (project is None):
        raise UsageError("name whose quota it is", "give --user USER or --project PROJECT, and not both")
    texts = {"gpus": gpus, "cpus": cpus, "mem_mib": mem, "running": running, "waiting": waiting}
    texts |= {"project_bytes": project_bytes, "log_bytes": log_bytes, "output_bytes": output_bytes}
    change = _make_change({name: text for name, text in texts.items() if text is not None}, weight)
    command: CommandContext = context.obj
    with command.connect() as client:
        quota = client.change_quota(*(("user", user) if user is not None else ("project", project or "")), change)
    _print({"team": True, "quotas": [quota]}, command, json=json)


def _show(command: CommandContext, user: str | None, project: str | None, *, json: bool) -> None:
    with command.connect() as client:
        quotas = client.list_quotas(user, project)
    _print(quotas, command, json=json)


def _print(quotas: wire.QuotaList, command: CommandContext, *, json: bool) -> None:
    from riseml.cli.output.quota_views import list_quotas

    if json:
        command.printer.print_json(quotas)
    else:
        command.printer.print_lines(list_quotas(quotas, command.printer.style))


def _make_change(texts: dict[str, str], weight: float | None) -> wire.QuotaChange:
    """Return the change that options ask for.

    Raises:
        UsageError: there is no option, or a value is not a quota.
    """
    if not texts and weight is None:
        raise UsageError(
            "nothing to change: give --gpus, --running or another limit", "`riseml quota set -h` lists them"
        )
    if weight is not None and not 0 < weight <= 1000:
        raise UsageError(f"--weight must be above 0 and at most 1000, not {weight:g}", "2 counts each hour half")
    change: dict[str, Any] = {} if weight is None else {"weight": weight}
    for name, text in texts.items():
        if text == "default":
            change.setdefault("defaults", []).append(name)
        else:
            change[name] = None if text == "none" else _read_amount(name, text)
    return change  # type: ignore[return-value]  # the keys are those of the options


def _read_amount(name: str, text: str) -> float:
    option = f"--{name.removesuffix('_mib').replace('_', '-')}"
    if name == "mem_mib" or name.endswith("_bytes"):
        return _read_size(option, text, in_mib=name == "mem_mib")
    try:
        amount = float(text) if name == "cpus" else int(text)
    except ValueError:
        raise UsageError(f"{option} {text[:40]!r} is not a quota", _FORMS) from None
    if not 0 <= amount <= _MOST_COUNT:
        raise UsageError(f"{option} must be between 0 and {_MOST_COUNT:,}, not {text[:40]}", _FORMS)
    return amount


def _read_size(option: str, text: str, *, in_mib: bool) -> int:
    from riseml.base.sizes import BadSize, parse_size

    try:
        size = parse_size(text)
    except BadSize as error:
        raise UsageError(f"{option} {text[:40]!r} {error.problem}", error.hint) from None
    if not size.prefix and size.amount != 0:
        raise UsageError(f"{option} {text[:40]!r} has no unit", "write a number with a unit, such as 64GiB")
    amount = 0 if not size.prefix else int(size.count_bytes())
    if amount > 1 << 60:
        raise UsageError(f"{option} {text[:40]!r} is too large", "`none` sets no limit")
    return -(-amount // (1 << 20)) if in_mib else amount
