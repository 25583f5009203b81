"""`self`: riseml itself, and the machine that it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from riseml.cli.commands.options import JsonOption
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext

self_app = typer.Typer(help="Check riseml itself, and this machine.")


@add_subcommand(self_app, "check", "riseml self check")
def check_self(context: typer.Context, *, json: JsonOption = False) -> None:
    """Check whether this machine has what riseml needs, and say what to do where it has not.

    Python, the disk of RISEML_HOME, the clock, cgroups, the GPU driver, the Docker Engine and its NVIDIA toolkit. It
    asks no server and changes nothing. Exit code 1: a check failed.
    """
    from riseml.cli.context import Exit
    from riseml.cli.output.host_views import list_self_findings
    from riseml.cli.output.text import count_noun
    from riseml.submission.server_process import run_self_check

    command: CommandContext = context.obj
    findings = run_self_check(command.settings())
    if json:
        command.printer.print_json({"findings": findings})
    else:
        command.printer.print_lines(list_self_findings(findings, command.printer.style))
    failed = sum(finding["outcome"] == "failed" for finding in findings)
    if failed:
        command.printer.say(f"{count_noun(failed, 'check')} failed.")
        raise Exit(1)
