"""`import`: a riseml.yml from the file of another system. Needs no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.cli.commands.options import FileOption, JsonOption
from riseml.cli.config_source import write_new_config
from riseml.cli.context import CommandContext
from riseml.cli.output.text import clean_text
from riseml.files.project.folder import CONFIG
from riseml.files.project.messages import format_path

_MOST_BYTES = 1 << 20  # largest manifest


def import_config(
    context: typer.Context,
    manifest: Annotated[
        Path, typer.Argument(metavar="MANIFEST", help="A TFJob, PyTorchJob, JAXJob or MPIJob, or a compose file.")
    ],
    *,
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Write a riseml.yml from a job of Kubeflow or a compose file.

    A TFJob, a PyTorchJob, a JAXJob, or an MPIJob that trains with Horovod; of a compose file each service is a role.
    The command never overwrites a file, and names each field that it leaves out.
    """
    from riseml.capsules.manifest_import import import_manifest
    from riseml.spec.config.loader import check_config

    command: CommandContext = context.obj
    path_text = str(file or CONFIG)
    path = command.folder / manifest
    imported = import_manifest(_read_manifest(path, str(manifest)), str(manifest), path.resolve().parent.name)
    checked = check_config(imported.text, path_text)
    command.printer.print_problems(checked.problems, path_text, imported.text)
    if checked.spec is None:
        raise UsageError(f"{format_path(str(manifest))} has something that riseml does not take", "nothing was written")
    write_new_config(command.folder, path_text, imported.text)
    command.printer.print_notes([clean_text(f"not taken over: {part}") for part in imported.left_out])
    command.printer.print_notes([clean_text(f"changed: {part}") for part in imported.changed])
    if imported.to_fill:
        command.printer.print_notes([clean_text(f"to do: {imported.to_fill}")])
    if json:
        command.printer.print_json({"file": path_text, "project": imported.project, "old": None})
    else:
        then = "Then `riseml train` runs it." if imported.to_fill else "`riseml train` runs it."
        command.printer.print_lines([clean_text(f"Wrote {path_text} for project {imported.project}. {then}")])


def _read_manifest(path: Path, path_text: str) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1).decode("utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"there is no {path_text}", "name the file of a manifest") from None
    except OSError as error:
        raise Refused(f"cannot read {path_text}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path_text} is not UTF-8 text", "save the file as UTF-8") from None
