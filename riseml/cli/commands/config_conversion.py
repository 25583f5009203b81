"""`init --convert`: the riseml.yml of an earlier RiseML becomes one of this version."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from riseml.base.errors import Refused, UsageError
from riseml.cli.config_source import write_new_config
from riseml.cli.context import CommandContext
from riseml.cli.output.style import paint
from riseml.cli.output.text import clean_text
from riseml.submission.config_source import ConfigSource, read_config_source

_COLOURS = {"+": "32", "-": "31", "@": "36"}  # SGR codes of the lines of a diff
_MOST_KEPT = 100  # earlier texts that may be beside a file


def convert_config(command: CommandContext, file: Path | None, *, yes: bool, json: bool) -> None:
    """Show what a riseml.yml of an earlier RiseML becomes, ask, and write it. The earlier text stays beside it.

    Raises:
        NotFound: there is no such file.
        UsageError: the file cannot be converted whole.
        Refused: the user said no, nobody can be asked, or the file cannot be written.
    """
    from riseml.spec.config.earlier_files import convert_earlier_file
    from riseml.spec.config.loader import check_config

    source = read_config_source(command.folder, file)
    converted = convert_earlier_file(source.text, source.project.folder.name)
    is_same = converted.text == source.text
    name = source.name if is_same else f"{source.name} (converted)"
    checked = check_config(converted.text, name)
    if checked.spec is None:
        command.printer.print_problems(checked.problems, name, converted.text)
        raise UsageError(
            f"{source.name} has something that riseml cannot convert; nothing was written",
            "correct the problems above, then type `riseml init --convert` again",
        )
    if not json:
        if is_same:
            command.printer.print_lines([clean_text(f"{source.name} is a file of this version: nothing to convert.")])
            return
        command.printer.print_lines(list_differences(source, converted.text, colour=command.printer.style.colour))
        command.printer.print_notes([clean_text(change) for change in (*converted.changes, *converted.left_out)])
    old_name = None if is_same else _replace_config(command, source, converted.text, yes=yes)
    if json:
        command.printer.print_json({"file": source.name, "project": checked.spec.project, "old": old_name})
    else:
        message = f"Wrote {source.name}; the earlier text is in {old_name}. `riseml train` runs it."
        command.printer.say(clean_text(message))


def list_differences(source: ConfigSource, text: str, *, colour: bool = False) -> list[str]:
    """Return the lines that differ, with some lines around them, as `diff -u` prints them."""
    names = (source.name, f"{source.name} (new)")
    lines = difflib.unified_diff(source.text.splitlines(), text.splitlines(), *names, lineterm="")
    return [paint(clean_text(line), _COLOURS.get(line[:1], ""), colour=colour) for line in lines]


def _replace_config(command: CommandContext, source: ConfigSource, text: str, *, yes: bool) -> str:
    """Ask, keep the earlier text beside the file, and write the new one; return the name that has the earlier text."""
    if not yes:
        if not command.asks:
            raise Refused("nothing was written: there is no terminal to ask on", "-y converts without a question")
        if not command.ask(f"Write {source.name}?"):
            raise Refused("nothing was written")
    target = source.project.file.resolve()  # of a link: the file that it leads to
    old_name = _choose_name(target)
    write_new_config(target.parent, old_name.name, source.text)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        write_new_config(target.parent, fresh.name, text)
        fresh.chmod(target.stat().st_mode & 0o777)
        fresh.replace(target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise Refused(f"cannot write {source.name}: {error.strerror}", "check the folder and its permissions") from None
    return os.path.relpath(old_name, command.folder)


def _choose_name(target: Path) -> Path:
    """Return the first free one of riseml.yml.old, riseml.yml.old2, ...

    Raises:
        Refused: there are too many.
    """
    for number in range(1, _MOST_KEPT + 1):
        old_name = target.with_name(f"{target.name}.old{number if number > 1 else ''}")
        if not os.path.lexists(old_name):
            return old_name
    raise Refused(f"{target.name}.old and {_MOST_KEPT - 1} others are there", "remove some of them")
