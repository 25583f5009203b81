"""`audit`: what users of a team's server have changed, and whether its log of that is whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Refused, UsageError
from riseml.cli.arguments import parse_since
from riseml.cli.commands.options import JsonOption
from riseml.cli.help_text import add_subcommand
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

_USUAL_LINES = 50
_MOST_LINES = 10_000
_HEAD = re.compile(r"([1-9][0-9]{0,14}):([0-9a-f]{64})", re.ASCII)
_COLUMNS = (
    Column("LINE", right=True, spare=1),
    Column("AT"),
    Column("USER"),
    Column("KEY", spare=2),
    Column("ADDRESS", spare=3),
    Column("REQUEST", shrinks=True),
    Column("RESULT"),
)

audit_app = typer.Typer(help="Show what users of a team's server have changed; check its log of that.")


@audit_app.callback(invoke_without_command=True)
def show_audit(
    context: typer.Context,
    *,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", show_default=False, help="Only what USER asked for.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", show_default=False, help="Begin at TIME: 7d or 2026-08-31T07:23:46Z."),
    ] = None,
    rows: Annotated[
        int, typer.Option("-n", "--rows", min=1, max=_MOST_LINES, metavar="N", help="Print the newest N lines.")
    ] = _USUAL_LINES,
    json: JsonOption = False,
) -> None:
    """Show what users of a team's server have changed; check its log of that.

    Each write has a line before it takes effect, and each refusal one before its answer. For administrators.
    """
    command: CommandContext = context.obj
    if context.invoked_subcommand is not None:
        return
    begin = None if since is None else parse_since(since, command.now())
    with command.connect() as client:
        answer = client.list_audit_lines(user, begin, rows)
    if json:
        command.printer.print_json(answer)
        return
    cells = [_list_cells(line) for line in reversed(answer["lines"])]
    table = build_table(_COLUMNS, cells, command.printer.style) if cells else ["The audit log has no such line."]
    command.printer.print_lines(table)


@add_subcommand(audit_app, "verify", "riseml audit verify", "riseml audit verify --head 41:9f2c...")
def verify_audit(
    context: typer.Context,
    *,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="LINE:HASH", show_default=False, help="A last line that an earlier `verify` has printed."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check that nobody has changed the audit log.

    Each line has a hash over itself and the line before it. Keep the last line that this prints elsewhere, and give it
    to a later check: that shows a log whose end was cut off, or that was written anew as a whole.
    """
    command: CommandContext = context.obj
    kept_head = None if head is None else _parse_head(head)
    with command.connect() as client:
        check = client.check_audit_log(kept_head)
    if json:
        command.printer.print_json(check)
    elif not check["problem"]:
        command.printer.print_lines(_describe_check(check))
    if check["problem"]:
        raise Refused(
            f"the audit log is not what the server wrote: {check['problem']}",
            f"lines 1 to {check['number']} are right; compare the rest with a backup"
            if check["number"]
            else "compare it with a backup",
        )


def _parse_head(text: str) -> tuple[int, str]:
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--head {clean_text(text)[:80]!r} is no line and hash", "give what `riseml audit verify` has printed"
        )
    return int(match[1]), match[2]


def _describe_check(check: wire.AuditCheckView) -> list[str]:
    if not check["number"]:
        return ["The audit log is whole. It has no line yet."]
    return [
        f"The audit log is whole: lines 1 to {check['number']}.",
        f"Last line: {check['number']}:{check['hash']}",
    ]


def _list_cells(line: wire.AuditLineView) -> list[str]:
    result = line["result"] if line["of"] is None else f"{line['result']} (line {line['of']})"
    return [
        str(line["number"]),
        line["at"],
        line["user"] or "-",
        line["key"] or "-",
        line["address"] or "-",
        line["request"],
        result,
    ]
