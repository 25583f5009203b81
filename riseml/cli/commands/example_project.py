"""`init --example`: list the example projects, or write one with its data."""

from __future__ import annotations

import subprocess
import sys

from riseml.base.errors import NotFound
from riseml.cli.context import CommandContext
from riseml.cli.example_projects import ExampleProject, find_example, list_examples, write_example
from riseml.cli.output.text import clean_text, count_noun


def show_examples(command: CommandContext, *, json: bool) -> None:
    """List the examples."""
    examples = list_examples()
    if json:
        command.printer.print_json([{"name": example.name, "summary": example.summary} for example in examples])
        return
    width = max((len(example.name) for example in examples), default=0)
    rows = [f"{example.name.ljust(width)}  {example.summary}" for example in examples]
    command.printer.print_lines([*rows, "", "`riseml init --example NAME` writes one into a folder of its name."])


def write_example_project(command: CommandContext, name: str, *, json: bool) -> None:
    """Write an example into a new folder of its name, and its data into the data folder.

    Raises:
        Conflict: the folder is there and has something in it.
        NotFound: there is no such example, or its data cannot be fetched.
        Refused: the folder cannot be written.
    """
    example = find_example(name)
    count = write_example(example, command.folder / name)
    if not json:
        command.printer.print_lines([clean_text(f"Wrote {count_noun(count, 'file')} into {name}: {example.summary}.")])
    if example.needs_digits:
        _fetch_digits(command, example)
    if json:
        command.printer.print_json({"file": f"{name}/riseml.yml", "project": name, "old": None})
    else:
        command.printer.print_lines([f"Next: cd {name} && riseml train"])


def _fetch_digits(command: CommandContext, example: ExampleProject) -> None:
    """Fetch the digits into the data folder, unless they are there.

    Raises:
        NotFound: they cannot be fetched.
    """
    folder = command.settings().data / "digits"
    result = subprocess.run(
        [sys.executable, str(example.digits_script), str(folder)],
        env=dict(command.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    lines = [clean_text(line) for line in result.stdout.splitlines() if line.strip()]
    if result.returncode != 0:
        reason = lines[-1] if lines else f"exit code {result.returncode}"
        hint = f"with a connection: cd {example.name} && python3 get_data.py {folder}"
        raise NotFound(f"the example is there, but not its data: {reason}", hint)
    command.printer.say(*lines[-1:])
