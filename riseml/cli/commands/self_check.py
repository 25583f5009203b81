"""`self`: riseml itself, and the machine that it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from riseml.cli.commands.options import JsonOption
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from riseml import wire
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


@add_subcommand(self_app, "schemas", "riseml self schemas")
def list_schemas(context: typer.Context, *, json: JsonOption = False) -> None:
    """List the JSON Schemas with which an editor completes, explains and checks riseml.yml, pool.yml and server.yml.

    `# yaml-language-server: $schema=PATH` as the first line of a file names its schema: `riseml docs editors`.
    """
    from riseml.cli.output.host_views import list_schema_files
    from riseml.spec.schema.contract import CONFIG_CONTRACT, POOL_CONTRACT, SERVER_CONTRACT

    command: CommandContext = context.obj
    contracts = {"riseml.yml": CONFIG_CONTRACT, "pool.yml": POOL_CONTRACT, "server.yml": SERVER_CONTRACT}
    files: list[wire.SchemaFile] = [
        {"file": name, "schema": str(contract.path)} for name, contract in contracts.items()
    ]
    if json:
        command.printer.print_json({"schemas": files})
    else:
        command.printer.print_lines(list_schema_files(files, command.printer.style))
