"""`ls`, `cat`, `du`, `rm`: files of data://, output:// and of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Conflict, Refused
from riseml.cli.commands.options import JsonOption, OldDryRunOption, accept_old_letter

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.cli.files.opened import OpenedPath
    from riseml.job_programs.folder_paths import FileInfo

_PLACES = "data://PATH, output://4/PATH, or a path of this machine; `*`, `?` and `[...]` are patterns."
_MOST_TABLE = 5000  # entries that one table aligns; longer lists are printed as they come
PathsArgument = Annotated[list[str], typer.Argument(metavar="PATH...", show_default=False, help=_PLACES)]


def list_paths(
    context: typer.Context,
    paths: PathsArgument,
    *,
    long: Annotated[bool, typer.Option("-l", "--long", help="Show kinds, sizes in bytes and times.")] = False,
    recursive: Annotated[bool, typer.Option("-r", "-R", "--recursive", help="Show what is in folders, too.")] = False,
    everything: Annotated[bool, typer.Option("-a", "--all", help="Show names that begin with a dot.")] = False,
    json: JsonOption = False,
) -> None:
    """List files of data://, output:// and of this machine.

    `riseml ls output://4`, `riseml ls -l 'output://4/ckpt-*'`, `riseml ls -r data://mnist`. Outputs of experiments
    that failed or were killed are there like others. Names with line breaks and the like are shown escaped. Where
    the paths name several files or folders, files are shown with their addresses, and entries below that of the folder.
    """
    from riseml.cli.files.opened import PathOpener
    from riseml.cli.output.file_views import list_entries

    command: CommandContext = context.obj
    with ExitStack() as stack:
        openings = PathOpener(command, stack)
        sources = [opened for text in paths for opened in openings.find_sources(text)]
        for opened in sources if json else ():
            for page in _list_pages(opened, deep=recursive):
                for entry in _leave_out_hidden(opened, page, everything=everything):
                    command.printer.print_json(_show_entry(opened, entry))
        for title, entries in () if json else _list_parts(sources, deep=recursive, everything=everything):
            command.printer.print_lines([title] if title else [])
            for part in _take_entries(iter(entries), _MOST_TABLE):
                command.printer.print_lines(list_entries(part, command.printer.style, long=long))


def print_file(context: typer.Context, paths: PathsArgument) -> None:
    """Print files of data://, output:// or of this machine.

    `riseml cat output://4/metrics.json`. On a terminal, what would change it is shown as text; in a pipe or a file,
    every byte comes as it is.
    """
    from riseml.cli.files.opened import PathOpener

    command: CommandContext = context.obj
    with ExitStack() as stack:
        openings = PathOpener(command, stack)
        for text in paths:
            for opened in openings.find_sources(text):
                pieces = opened.end.side.read_file(opened.end.path)
                size = int(next(pieces).decode().split()[0])
                command.printer.print_bytes(_cut_proof(pieces, size, opened.shown))


def measure_paths(context: typer.Context, paths: PathsArgument, *, json: JsonOption = False) -> None:
    """Show how many bytes and files are below a path.

    `riseml du output://4`, `riseml du data://`. One line for each folder in it, and the sum last.
    """
    from riseml.cli.files.opened import PathOpener
    from riseml.cli.output.file_views import list_usage

    command: CommandContext = context.obj
    with ExitStack() as stack:
        openings = PathOpener(command, stack)
        for text in paths:
            for opened in openings.find_sources(text):
                rows = _measure_folders(opened)
                if json:
                    for row in rows:
                        command.printer.print_json(row)
                else:
                    command.printer.print_lines(list_usage(rows, command.printer.style))


def remove_paths(
    context: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", show_default=False, help="data:// or output://4/.")],
    *,
    recursive: Annotated[bool, typer.Option("-r", "-R", "--recursive", help="Also folders, with all in them.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
    old_dry: OldDryRunOption = False,
) -> None:
    """Remove files of data:// or of an ended experiment's output.

    `riseml rm output://4/core`, `riseml rm -r 'output://4/ckpt-1*'`. Asks first; without a terminal it needs `--yes`.
    A link is removed itself, and never what it leads to.
    """
    from riseml.cli.files.opened import PathOpener
    from riseml.cli.files.removal import check_removal, remove_opened
    from riseml.cli.output.file_views import list_usage
    from riseml.cli.output.text import count_noun

    command: CommandContext = context.obj
    dry = accept_old_letter(command, "-n", "--dry-run", is_given=old_dry) or dry
    with ExitStack() as stack:
        openings = PathOpener(command, stack)
        sources = [
            opened for text in paths for opened in check_removal(openings.find_sources(text), text, recursive=recursive)
        ]
        rows = [_sum_up(opened) for opened in sources]
        if not json or dry:
            _print_rows(command, rows, list_usage(rows, command.printer.style), json=json)
        files = sum(row["files"] for row in rows)
        if dry:
            if not json:
                command.printer.say(f"Would remove {count_noun(files, 'file')}.")
            return
        _confirm(command, files, yes=yes)
        for opened in sources:
            removed = remove_opened(opened)
            if json:
                command.printer.print_json({**removed, "path": _address(opened, "")})
        if not json:
            command.printer.say(f"Removed {count_noun(files, 'file')}.")


def _print_rows(command: CommandContext, rows: list[wire.DiskUsageView], lines: list[str], *, json: bool) -> None:
    if json:
        for row in rows:
            command.printer.print_json(row)
    else:
        command.printer.print_lines(lines)


def _confirm(command: CommandContext, files: int, *, yes: bool) -> None:
    if yes:
        return
    if not command.asks:
        raise Refused("nothing was removed: there is no terminal to ask on", "--yes removes without a question")
    from riseml.cli.output.text import count_noun

    if not command.ask(f"Remove {count_noun(files, 'file')} for good?"):
        raise Refused("nothing was removed")


def _list_pages(opened: OpenedPath, *, deep: bool) -> Iterator[list[FileInfo]]:
    """Yield the entries of a folder page by page, beginning with a short page; or the file itself."""
    from riseml.files.storage_files import MOST_ENTRIES, ListRequest

    if opened.entry.kind != "folder":
        yield [opened.entry]
        return
    limit = 1000
    after = None
    while True:
        page = opened.end.side.list_files(ListRequest(opened.end.path, after, limit, deep))
        yield page.entries
        limit = MOST_ENTRIES
        after = page.next
        if after is None:
            return


def _list_parts(sources: list[OpenedPath], *, deep: bool, everything: bool) -> Iterator[tuple[str, list[FileInfo]]]:
    """Yield entries for people, files first, under a heading: with several paths, the folder that they are in."""
    several = len(sources) > 1
    folders = [opened for opened in sources if opened.entry.kind == "folder"]
    files = [opened for opened in sources if opened.entry.kind != "folder"]
    if files:
        yield "", [file.entry._replace(path=file.make_address() if several else file.name) for file in files]
    for opened in folders:
        title = f"{opened.shown}:" if several else ""
        for page in _list_pages(opened, deep=deep):
            yield title, _leave_out_hidden(opened, page, everything=everything)
            title = ""


def _leave_out_hidden(opened: OpenedPath, page: list[FileInfo], *, everything: bool) -> list[FileInfo]:
    """Return the entries without a folder's hidden ones; an entry that the user has named is never hidden."""
    if everything or opened.entry.kind != "folder":
        return page
    return [entry for entry in page if not _is_hidden(entry)]


def _is_hidden(entry: FileInfo) -> bool:
    return any(name.startswith(".") for name in entry.path.split("/"))


def _take_entries(entries: Iterator[FileInfo], most: int) -> Iterator[list[FileInfo]]:
    from itertools import islice

    while part := list(islice(entries, most)):
        yield part


def _show_entry(opened: OpenedPath, entry: FileInfo) -> dict[str, object]:
    from riseml.files.path_names import to_text

    inner = entry.path if opened.entry.kind == "folder" else ""
    target = None if entry.target is None else to_text(entry.target)
    return {**entry._asdict(), "path": _address(opened, inner), "target": target}


def _address(opened: OpenedPath, inner: str) -> str:
    from riseml.files.path_names import to_text

    return to_text(opened.make_address(inner))


def _sum_up(opened: OpenedPath) -> wire.DiskUsageView:
    return _measure_folders(opened)[-1]


def _measure_folders(opened: OpenedPath) -> list[wire.DiskUsageView]:
    """Return the bytes and files of each folder below a path, and the sum."""
    from itertools import chain

    below: dict[str, list[int]] = {}
    total = [0, 0]
    for entry in chain.from_iterable(_list_pages(opened, deep=True)):
        first, slash, _ = entry.path.partition("/")
        if entry.kind == "folder":
            if not slash:
                below.setdefault(first, [0, 0])
            continue
        for sums in (total, below[first]) if slash and first in below else (total,):
            sums[0] += 1
            sums[1] += entry.size
    rows: list[wire.DiskUsageView] = [
        {"path": _address(opened, name), "files": sums[0], "size": sums[1]} for name, sums in below.items()
    ]
    return [*rows, {"path": _address(opened, ""), "files": total[0], "size": total[1]}]


def _cut_proof(pieces: Iterator[bytes], size: int, address: str) -> Iterator[bytes]:
    """Yield a content without its proof, and check its SHA-256 at the end."""
    import hashlib

    digest = hashlib.sha256()
    received = 0
    for piece in pieces:
        if received < size:
            received += len(piece)
            digest.update(piece)
            yield piece
        elif piece != b"0" + digest.digest():
            raise Conflict(f"{address} changed while it was read", "read it again when nothing writes to it")
