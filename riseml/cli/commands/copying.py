"""`cp`: files between this machine, the storages of the server, and running jobs."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Conflict, Refused, UsageError
from riseml.cli.commands.jobs import choose_job
from riseml.cli.commands.options import JsonOption, OldDryRunOption, accept_old_letter
from riseml.cli.output.text import clean_text

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.cli.files.opened import OpenedPath
    from riseml.client.copying.copies import CopyTally

_JOB_PATH = re.compile(r"([^:/]+):(.+)", re.DOTALL)
_STORED = re.compile(r"[a-z][a-z0-9+.-]*://", re.DOTALL)


def copy_files(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... TARGET", show_default=False, help="output://4/x, data://x, 4.master:/x, ./x."
        ),
    ],
    *,
    recursive: Annotated[bool, typer.Option("-r", "-R", "--recursive", hidden=True)] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Show what would be copied, and copy nothing.")] = False,
    json: JsonOption = False,
    old_dry: OldDryRunOption = False,
) -> None:
    """Copy files between this machine, data://, output:// and jobs.

    `riseml cp output://4/model .`, `riseml cp ./mnist data://`, `riseml cp 'output://4/*.json' results/`. A folder is
    copied with everything in it. A file with the same size and time at the target is skipped, so that an interrupted
    copy continues where it stopped. Checksums are compared. Links are copied as links and never followed; links that
    lead out of the copied folder are left out, and the command names them.

    `riseml cp 4.master:/output/x .` and back: `riseml cp ./x 4.master:/output/`. Of a running job's paths, those that
    do not begin with / are below its working directory. A file is replaced, a folder never.
    """
    del recursive  # folders need no option
    command: CommandContext = context.obj
    dry = accept_old_letter(command, "-n", "--dry-run", is_given=old_dry) or dry
    if len(paths) < 2:
        raise UsageError("cp needs a source and a target", "write `riseml cp output://4/model .`, or the other way")
    in_jobs = [path for path in paths if _find_job(path) is not None]
    if in_jobs:
        if len(paths) != 2 or dry or any(_STORED.match(path) for path in paths):
            raise UsageError(
                f"{in_jobs[0]} is in a job: one path is copied from or to this machine, and --dry-run shows nothing",
                "write `riseml cp 4.master:/output/x .`, or the other way",
            )
        _copy_job_path(command, paths[0], paths[1], json=json)
        return
    if not any(_STORED.match(path) for path in paths):
        raise UsageError(
            "one of both paths must be in a job, in data:// or in output://",
            "write `riseml cp 4.master:/output/x .` or `riseml cp output://4/x .`, or the other way",
        )
    _copy_stored(command, paths, dry=dry, json=json)


def _find_job(text: str) -> re.Match[str] | None:
    return None if _STORED.match(text) else _JOB_PATH.fullmatch(text)


def _copy_job_path(command: CommandContext, source: str, target: str, *, json: bool) -> None:
    from riseml.cli.job_copy import JobPath, copy_in, copy_out

    from_job = _find_job(source)
    to_job = _find_job(target)
    if (from_job is None) is (to_job is None):
        raise UsageError(
            "one of both paths must be in a job", "write `riseml cp 4.master:/output/x .`, or the other way"
        )
    with command.connect() as client, client.watch_server():
        if from_job is not None:
            place = JobPath(choose_job(command, client, from_job[1]), from_job[2])
            final = copy_out(client.address, place, command.folder / target, wants_folder=target.endswith("/"))
            copy: wire.CopyView = {"from": str(place), "to": str(final)}
        elif to_job is not None:
            place = JobPath(choose_job(command, client, to_job[1]), to_job[2])
            copy = {"from": source, "to": str(copy_in(client.address, command.folder / Path(source), place))}
    if json:
        command.printer.print_json(copy)
    else:
        command.printer.print_lines([clean_text(f"{copy['from']} -> {copy['to']}")])


def _copy_stored(command: CommandContext, paths: list[str], *, dry: bool, json: bool) -> None:
    from riseml.cli.files.opened import PathOpener
    from riseml.cli.files.progress import CopyProgress
    from riseml.cli.output.file_views import summarise_copy
    from riseml.client.copying.copies import CopyLocation, add_tallies, copy_tree
    from riseml.files.path_names import join_paths
    from riseml.job_programs.folder_paths import show_name

    *sources, text = paths
    with ExitStack() as stack:
        openings = PathOpener(command, stack)
        named = [opened for source in sources for opened in openings.find_sources(source)]
        different = list({opened.shown: opened for opened in named}.values())
        target, present, wants_folder = openings.open_target(text)
        into = wants_folder or (present is not None and present.kind == "folder")
        if len(different) == 1 and different[0].entry.kind == "link":
            link = different[0]
            raise Refused(
                f"{link.shown} is a link to {show_name(link.entry.target or '')}, and riseml follows none",
                "name what it leads to; in a folder that is copied links stay links",
            )
        if len(different) > 1 and not into:
            raise UsageError(f"{text} is not a folder, and there are {len(different)} sources", f"write {text}/")
        _check_names(different)
        progress = CopyProgress(command.printer, dry=dry, quiet=json)
        tallies = []
        for opened in different:
            at = CopyLocation(target.side, join_paths(target.path, opened.name) if into else target.path, target.title)
            tallies.append(copy_tree(opened.end, opened.entry, at, progress.watch))
        progress.close()
    tally = add_tallies(tallies)
    summary = _show_tally(tally, paths, dry=dry)
    if json:
        command.printer.print_json(summary)
    else:
        command.printer.print_lines([summarise_copy(summary)])
    _report_trouble(command, tally)


def _check_names(sources: list[OpenedPath]) -> None:
    """Check that no source would overwrite the copy of another one.

    Raises:
        UsageError: two have the same name.
    """
    by_name: dict[str, OpenedPath] = {}
    for source in sources:
        first = by_name.setdefault(source.name, source)
        if first is not source:
            raise UsageError(
                f"{first.shown} and {source.shown} would have the same name at the target", "copy them into two folders"
            )


def _show_tally(tally: CopyTally, paths: list[str], *, dry: bool) -> wire.CopySummary:
    return {
        "source": " ".join(paths[:-1]),
        "target": paths[-1],
        "files": tally.files,
        "size": tally.size,
        "links": tally.links,
        "unchanged": tally.unchanged,
        "left_out": tally.left_out,
        "dry_run": dry,
    }


def _report_trouble(command: CommandContext, tally: CopyTally) -> None:
    """Report files that were not copied.

    Raises:
        Conflict: a file changed each time.
    """
    from riseml.job_programs.folder_paths import show_name

    if tally.left_out:
        command.printer.warn(
            "left out, because they are links that lead out of what is copied, or no files: "
            + ", ".join(map(show_name, tally.left_out[:5]))
            + (f" and {len(tally.left_out) - 5} more" if len(tally.left_out) > 5 else "")
        )
    if tally.changed:
        raise Conflict(
            f"{show_name(tally.changed[0])} changed each time it was copied, and was not"
            + (f"; {len(tally.changed) - 1} more likewise" if len(tally.changed) > 1 else ""),
            "copy it again when nothing writes to it",
        )
