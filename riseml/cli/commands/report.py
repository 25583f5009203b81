"""`report`: pages of Markdown with live charts, tables and media of runs, which the server keeps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Refused, RisemlError, UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.cli.output.report_page import BlockContent, MediaContent
    from riseml.client.report_client import ReportClient

report_app = typer.Typer(help="Write pages of Markdown with live charts and tables of runs; export them.")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="lr-sweep; another user's: paul.lr-sweep.")
]
_STANDARD_INPUT = "-"
_MOST_TEXT = 1 << 20  # bytes of a file with a report; the server takes less
_MOST_MEDIA = 16 << 20  # bytes of one file in an exported report
_SHOWN = ("picture", "text", "table")  # kinds of media that an exported report has


@add_subcommand(
    report_app,
    "create",
    "riseml report create lr-sweep report.md",
    "riseml report create lr-sweep report.md --replace",
    "riseml report create lr-sweep - --project vision",
)
def create_report(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="A part of its address: lr-sweep.")],
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False, help="Markdown; - is standard input.")],
    *,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT", help="Its members see it where it is a team project.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of the report of this name.")] = False,
    json: JsonOption = False,
) -> None:
    """Save a report: Markdown with charts, tables and media in blocks.

    A block ```chart has the keys `runs` and `metric`, ```table `runs` and `columns`, ```media `runs`, `name` and
    perhaps `step`, in lines such as `metric: loss`. The page shows the report at /reports/NAME.
    """
    from riseml.cli.output.report_views import describe_report

    command: CommandContext = context.obj
    request: wire.ReportRequest = {"name": name, "text": _read_text(command.folder, file)}
    if project is not None:
        request["project"] = project
    with command.connect() as client:
        reports = client.open_reports()
        if replace:
            request["version"] = reports.get_report(name)["version"]
        report = reports.save_report(request)
    if json:
        command.printer.print_json(report)
    else:
        command.printer.print_lines([f"Saved {describe_report(report)}"])


@add_subcommand(report_app, "list", "riseml report list")
def list_reports(context: typer.Context, *, json: JsonOption = False) -> None:
    """List the reports that you see."""
    from riseml.cli.output.report_views import list_report_table

    command: CommandContext = context.obj
    with command.connect() as client:
        reports = client.open_reports().list_reports()
    if json:
        command.printer.print_json({"reports": reports})
    else:
        command.printer.print_lines(list_report_table(reports, command.now(), command.printer.style))


@add_subcommand(report_app, "show", "riseml report show lr-sweep")
def show_report(context: typer.Context, name: NameArgument, *, json: JsonOption = False) -> None:
    """Print the Markdown of a report."""
    from riseml.cli.output.text import clean_text

    command: CommandContext = context.obj
    with command.connect() as client:
        report = client.open_reports().get_report(name)
    if json:
        command.printer.print_json(report)
    else:
        command.printer.print_lines([clean_text(line) for line in report["text"].splitlines()])


@add_subcommand(report_app, "delete", "riseml report delete lr-sweep --yes")
def delete_report(
    context: typer.Context,
    name: NameArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete a report. Its runs stay.

    Asks first; without a terminal it needs `--yes`.
    """
    from riseml.cli.output.report_views import describe_report

    command: CommandContext = context.obj
    if not yes and not command.asks:
        raise Refused("nothing was deleted: there is no terminal to ask on", "--yes deletes without a question")
    if not yes and not command.ask(f"Delete the report {name} for good?"):
        raise Refused("nothing was deleted")
    with command.connect() as client:
        report = client.open_reports().remove_report(name)
    if json:
        command.printer.print_json(report)
    else:
        command.printer.print_lines([f"Deleted {describe_report(report)}"])


@add_subcommand(report_app, "export", "riseml report export lr-sweep", "riseml report export lr-sweep page.html")
def export_report(
    context: typer.Context,
    name: NameArgument,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", show_default=False, help="Default: NAME.html.")
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Write a report into one HTML file, which needs no network.

    It has what the runs have now: charts as SVG, tables, and pictures as data; sound and videos stay out.
    """
    from riseml.cli.output.report_page import make_report_page
    from riseml.cli.output.text import clean_text

    command: CommandContext = context.obj
    path = file or Path(f"{name}.html")
    if path.name != str(path) and not (command.folder / path).parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", "name a file in a folder that exists")
    with command.connect() as client:
        reports = client.open_reports()
        report = reports.get_report(name)
        contents = [_read_content(reports, block) for block in report["blocks"]]
    page = make_report_page(report, contents, f"{command.now():%Y-%m-%d %H:%M} UTC")
    try:
        (command.folder / path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}", "check the folder and its permissions") from None
    exported: wire.ExportedReport = {"id": report["id"], "file": str(path), "size": len(page.encode())}
    if json:
        command.printer.print_json(exported)
    else:
        command.printer.print_lines([clean_text(f"Wrote {exported['file']}: {exported['size']:,} bytes")])


def _read_text(folder: Path, file: str) -> str:
    try:
        if file == _STANDARD_INPUT:
            content = sys.stdin.buffer.read(_MOST_TEXT + 1)
        else:
            with (folder / file).open("rb") as opened:
                content = opened.read(_MOST_TEXT + 1)
        if len(content) > _MOST_TEXT:
            raise UsageError(f"{file} has more than {_MOST_TEXT:,} bytes", "a report is a text, not a file of data")
        return content.decode()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", "name a file with Markdown, or -") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text", "write the report as UTF-8") from None


def _read_content(reports: ReportClient, block: wire.ReportBlock) -> BlockContent:
    """Return what a block shows now; a run whose host is away leaves a sentence."""
    from riseml.cli.output.report_page import BlockContent

    try:
        match block["kind"]:
            case "chart":
                curves = [curve for run in block["runs"] for curve in reports.list_curves(run, block["metric"])]
                return BlockContent(curves=curves)
            case "table" if block["runs"]:
                return BlockContent(table=reports.get_table(block["runs"], block["columns"]))
            case "media":
                return BlockContent(
                    media=[media for run in block["runs"] for media in _read_media(reports, run, block)]
                )
            case _:
                return BlockContent()
    except RisemlError as error:
        return BlockContent(problem=error.message)


def _read_media(reports: ReportClient, run: str, block: wire.ReportBlock) -> Iterator[MediaContent]:
    from riseml.cli.output.report_page import MediaContent

    for series in reports.list_media(run)["media"]:
        if series["name"] != block["name"] or series["kind"] not in _SHOWN:
            continue
        step = block["step"]
        items = [item for item in series["items"] if step is None or item["step"] <= step]
        if items and items[-1]["size"] <= _MOST_MEDIA:
            path = items[-1]["path"]
            content = reports.read_media(run, path, _MOST_MEDIA)
            yield MediaContent(run, items[-1]["step"], path.rpartition(".")[2].lower(), content)
