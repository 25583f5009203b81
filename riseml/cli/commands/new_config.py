"""`init` beside the files of a project: what they say, the question, and the riseml.yml that fits."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.base.records import dataclass
from riseml.cli.config_source import check_absent, write_new_config
from riseml.cli.context import CommandContext
from riseml.cli.output.project_findings import list_findings
from riseml.cli.output.text import clean_text, count_noun
from riseml.files.project.folder import CONFIG
from riseml.project_reading.findings import FILL_IN

if TYPE_CHECKING:
    from riseml.project_reading.config_text import ProjectConfig

_MOST_CHOICES = 9  # programs that a question offers


@dataclass(frozen=True, slots=True)
class NewConfigRequest:
    """What the user wants of a new riseml.yml."""

    file: Path | None  # None: riseml.yml
    project: str | None  # its name; None: the name of the folder
    framework: str | None  # of a starter file; None: the project says it
    script: str | None  # the program; None: the best one
    yes: bool
    json: bool


def write_fitting_config(command: CommandContext, request: NewConfigRequest) -> None:
    """Write a riseml.yml that fits the files of its folder, or a starter file where they show no program.

    Raises:
        Conflict: the file is there.
        NotFound: there is no such script.
        Refused: the user said no.
        UsageError: there is no such framework, or the script is not Python.
    """
    from riseml.spec.config.loader import load_config
    from riseml.spec.config.templates import make_starter_config

    name = str(request.file or CONFIG)
    path = command.folder / name
    check_absent(command.folder, name)
    if request.framework is not None and request.script is not None:
        raise UsageError(
            "--script takes no --framework: the code of the script says which one", "leave one of them out"
        )
    fitting = _read_project(command, path.absolute().parent, request) if request.framework is None else None
    named = request.project or path.absolute().parent.name
    text = fitting.text if fitting is not None else make_starter_config(named, request.framework)
    project = load_config(text).project
    write_new_config(command.folder, name, text)
    if request.json:
        command.printer.print_json({"file": name, "project": project, "old": None})
    elif fitting is None:
        advice = "`riseml train` runs it as it is; then put your program into `run`."
        command.printer.print_lines([clean_text(f"Wrote {name} for project {project}. {advice}")])
    else:
        is_open = any(FILL_IN in word for word in fitting.proposal.words)
        first = f"Replace {FILL_IN} in it; then " if is_open else ""
        command.printer.print_lines([clean_text(f"Wrote {name} for project {project}. {first}`riseml train` runs it.")])


def _read_project(command: CommandContext, folder: Path, request: NewConfigRequest) -> ProjectConfig | None:
    """Return what fits the files of a folder, after the user's yes; None: they show no program."""
    from riseml.project_reading.config_text import make_project_config
    from riseml.project_reading.project_files import read_project_files

    texts = read_project_files(folder)
    program = "" if request.script is None else check_script(folder, texts, request.script)
    named = request.project or folder.name
    fitting = make_project_config(texts, named, program)
    asks = command.asks and not request.yes and not request.json
    if fitting is not None and asks and not program and len(fitting.proposal.choices) > 1:
        program = _choose_program(command, fitting.proposal.choices)
        fitting = make_project_config(texts, named, program)
    if program and (fitting is None or fitting.proposal.program != program):
        raise UsageError(
            f"{program} is not Python that riseml can read", "name a script or a notebook that Python itself takes"
        )
    if fitting is None or request.json:
        return fitting
    proposal = fitting.proposal
    rows = list_findings(proposal.findings, command.printer.style)
    command.printer.print_lines([f"Read {count_noun(len(texts), 'file')} and ran none of them:", "", *rows, ""])
    command.printer.print_notes([clean_text(remark) for remark in proposal.remarks])
    if asks and not command.ask(f"Write {request.file or CONFIG}?", default=True):
        raise Refused("nothing was written", "`riseml init --framework plain` writes a starter file without a program")
    if not asks and not request.yes:
        more = f"; --script takes another of {len(proposal.choices)} programs" if proposal.choices[1:] else ""
        command.printer.print_notes([f"there is no terminal to ask on, so that this is written as it is{more}"])
    return fitting


def check_script(folder: Path, texts: Mapping[str, str], script: str) -> str:
    """Return the path of a script in the project.

    Raises:
        NotFound: there is no such file.
        UsageError: it is outside of the project, or no script.
    """
    path = posixpath.normpath(script)
    if path.startswith(("../", "/")) or path in ("..", "."):
        raise UsageError(f"--script {script!r} is no file of the project in {folder}", "give its path from there")
    if path in texts and path.endswith((".py", ".ipynb")):
        return path
    if not (folder / path).exists():
        raise NotFound(f"there is no {script} in {folder}", "give the path of a script or a notebook of the project")
    raise UsageError(
        f"--script {script!r} is not a script or a notebook that riseml reads",
        "it takes .py and .ipynb files of UTF-8 text, at most 256 KiB, that are no links",
    )


def _choose_program(command: CommandContext, choices: tuple[str, ...]) -> str:
    """Ask which program runs; Enter alone takes the first one.

    Raises:
        UsageError: the answer is none of them.
    """
    offered = choices[:_MOST_CHOICES]
    rows = [f"  {number}  {path}" for number, path in enumerate(offered, 1)]
    more = [f"  ... and {len(choices) - len(offered)} more" for _ in choices[_MOST_CHOICES : _MOST_CHOICES + 1]]
    command.printer.print_lines(["Which program does riseml run?", *map(clean_text, rows), *more])
    answer = command.ask_for_text("Number or path", "1").strip()
    if answer in choices:
        return answer
    if answer.isascii() and answer.isdigit() and 1 <= int(answer[:4]) <= len(offered):
        return offered[int(answer) - 1]
    raise UsageError(f"{answer!r} is none of the programs", "answer with a number or a path of the list")
