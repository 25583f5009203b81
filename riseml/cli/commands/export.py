"""`export`: files that run the same experiment without riseml."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import Refused, UsageError
from riseml.base.records import dataclass
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext
from riseml.cli.output.text import clean_text
from riseml.files.project.messages import format_path
from riseml.submission.capsule_source import CapsuleSource, find_capsule, open_archive, read_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from riseml.capsules.exported_run import ExportedFile, ExportedRun
    from riseml.client.server_client import Client


class ExportKind(Enum):
    """The systems for which riseml exports files."""

    COMPOSE = "compose"
    TFJOB = "tfjob"
    PYTORCHJOB = "pytorchjob"
    SLURM = "slurm"
    SH = "sh"


def export_run(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="ID|CAPSULE", help="An experiment, or the .riseml of an output.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", show_default=False, help="Default: riseml-4-compose, and so on.")
    ] = None,
    *,
    compose: Annotated[bool, typer.Option("--compose", help="For docker compose: ./run.sh.")] = False,
    tfjob: Annotated[bool, typer.Option("--tfjob", help="A TFJob of Kubeflow.")] = False,
    pytorchjob: Annotated[bool, typer.Option("--pytorchjob", help="A PyTorchJob of Kubeflow.")] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="A job of Slurm: sbatch job.sbatch.")] = False,
    sh: Annotated[bool, typer.Option("--sh", help="Processes of one machine: ./run.sh.")] = False,
    partition: Annotated[str, typer.Option(metavar="NAME", show_default=False, help="Of Slurm, for --slurm.")] = "",
    time: Annotated[
        str, typer.Option(metavar="LIMIT", show_default=False, help="Of the job, for --slurm. Default: max_duration.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Write files that run the same experiment without riseml.

    `riseml export 4 --compose`, `riseml export ./output/.riseml --slurm there`.
    """
    command: CommandContext = context.obj
    flags = dict(zip(ExportKind, (compose, tfjob, pytorchjob, slurm, sh), strict=True))
    chosen = [kind for kind, is_chosen in flags.items() if is_chosen]
    if len(chosen) != 1:
        raise UsageError("name one kind of files", "--compose, --tfjob, --pytorchjob, --slurm or --sh")
    slurm_options = _check_slurm_options(partition, time, chosen[0])
    place = find_capsule(command, source)
    with ExitStack() as stack:
        client = stack.enter_context(command.connect()) if _needs_server(place) else None
        run_source = read_source(command, source, place, client)
        if run_source.is_set:
            raise UsageError(f"{source} is a set, and files run one experiment", f"name one of its: `{source}.1`")
        folder = _export(command, run_source, client, _ExportRequest(chosen[0], target, *slurm_options))
    if json:
        command.printer.print_json({"folder": str(folder), "kind": chosen[0].value})
        return
    command.printer.print_lines([clean_text(f"Wrote {format_path(str(folder))} from {run_source.name}.")])


@dataclass(frozen=True, slots=True)
class _ExportRequest:
    """What the options ask for."""

    kind: ExportKind
    target: Path | None  # the folder; None: named after the run
    partition: str  # Slurm's partition; empty: that of the site
    time: str  # the limit of a job of Slurm; empty: `max_duration`


def _check_slurm_options(partition: str, time: str, kind: ExportKind) -> tuple[str, str]:
    """Return the options of Slurm.

    Raises:
        UsageError: they are for another kind of files, or sbatch would not take them.
    """
    if (partition or time) and kind is not ExportKind.SLURM:
        raise UsageError("--partition and --time are for --slurm", f"leave them out with --{kind.value}")
    if partition and not re.fullmatch(r"[A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*", partition):
        raise UsageError(f"--partition {partition} is not a name of a partition", "`sinfo` lists them")
    if time and not re.fullmatch(r"\d{1,6}(:\d\d){0,2}|\d{1,4}-\d\d?(:\d\d){0,2}", time):
        raise UsageError(f"--time {time} is not a time of Slurm", "write minutes, `2:30:00` or `1-12`")
    return partition, time


def _needs_server(place: object) -> bool:
    from riseml.capsules.folder import CapsuleInFolder

    if not isinstance(place, CapsuleInFolder):
        return True
    return bool(place.capsule["code"]["digest"]) and place.find_archive() is None


def _export(command: CommandContext, source: CapsuleSource, client: Client | None, request: _ExportRequest) -> Path:
    """Write the files of an export into a new folder, and return it."""
    from riseml.capsules.checkout import check_target, unpack_code
    from riseml.capsules.exported_run import CODE, make_run
    from riseml.capsules.folder import read_project_file

    digest = source.capsule["code"]["digest"]
    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(command, source, client)) if digest else None
        config = source.config if source.place is None else ""
        if archive is not None and source.place is not None:
            config = read_project_file(archive, source.capsule["code"]["file"] or "riseml.yml")
        owner = f"{os.getuid()}:{os.getgid()}"
        is_foreign = source.place is not None
        run = make_run(source.capsule, config, owner, has_code=archive is not None, is_foreign=is_foreign)
        files = {name: _encode_file(file) for name, file in _write_kind(run, request)}
        folder = request.target or Path(f"{run.title}-{request.kind.value}")
        whole = command.folder / folder
        check_target(whole)
        if archive is not None:
            unpack_code(archive, digest, whole / CODE)
        _write_files(whole, files.items())
    command.printer.print_notes([clean_text(note) for note in _list_notes(run, request.kind)])
    return folder


def _list_notes(run: ExportedRun, kind: ExportKind) -> Iterator[str]:
    """Yield what the user should know before running the files."""
    from riseml.capsules.compose_files import choose_data
    from riseml.capsules.exported_run import is_local
    from riseml.capsules.shell_files import list_image_gaps, list_other_environments

    passes = "; compose gives the containers the value of your shell" if kind is ExportKind.COMPOSE else ""
    for name in sorted({name for job in run.jobs for name in job.missing}):
        yield f"{name} has no value in these files: set it where they run{passes}"
    foreign = list_other_environments(run) if kind in (ExportKind.SLURM, ExportKind.SH) else []
    if foreign:
        names = ", ".join(job.name for job in foreign)
        yield f"{names}: image or install steps differ from those that install.sh is made from; --compose has them all"
    if kind in (ExportKind.SLURM, ExportKind.SH):
        for image in list_image_gaps(run):
            yield f"what the image {image} brought is not in install.sh, and is not known: add what the jobs need to it"
    else:
        for image in sorted(
            {environment["image"] for environment in run.capsule["environments"] if is_local(environment)}
        ):
            yield f"{image} has no digest of a registry: other machines build from it only if they get it by that name"
    if kind is ExportKind.COMPOSE and choose_data(run) != run.data:
        data = choose_data(run)
        yield f"the data was in {run.data}, and compose.yaml mounts {data}: set RISEML_DATA to mount another folder"
    patterns = _list_outputs(run.capsule["config"])
    if patterns:
        yield f"`outputs` has no effect in these files: {', '.join(patterns)} stay where the jobs write them"


def _list_outputs(config: str) -> list[str]:
    """Return the patterns of the files that riseml would move into OUTPUT_DIR."""
    from riseml.spec.config.loader import check_config

    spec = check_config(config).spec
    if spec is None:
        return []
    pattern_lists = (spec.train.policy.outputs, *(role.outputs for role in spec.train.roles))
    return list(dict.fromkeys(pattern for patterns in pattern_lists for pattern in patterns))


def _encode_file(file: ExportedFile) -> tuple[bytes, int]:
    """Return the bytes and the mode of a file.

    Raises:
        UsageError: a text of the capsule is not UTF-8.
    """
    try:
        return file.text.encode(), 0o755 if file.executable else 0o644
    except UnicodeEncodeError as error:
        odd = ascii(error.object[error.start])
        raise UsageError(f"the capsule has {odd}, which is not a UTF-8 character", "it was changed by hand") from None


def _write_kind(run: ExportedRun, request: _ExportRequest) -> Iterable[tuple[str, ExportedFile]]:
    from riseml.capsules.compose_files import write_compose
    from riseml.capsules.kubeflow_files import PYTORCHJOB, TFJOB, write_kubeflow
    from riseml.capsules.shell_files import write_sh, write_slurm

    match request.kind:
        case ExportKind.COMPOSE:
            return write_compose(run)
        case ExportKind.TFJOB:
            return write_kubeflow(run, TFJOB)
        case ExportKind.PYTORCHJOB:
            return write_kubeflow(run, PYTORCHJOB)
        case ExportKind.SLURM:
            return write_slurm(run, request.partition, request.time)
        case ExportKind.SH:
            return write_sh(run)


def _write_files(folder: Path, files: Iterable[tuple[str, tuple[bytes, int]]]) -> None:
    try:
        for name, (content, mode) in files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
    except OSError as error:
        raise Refused(f"{folder} cannot be written: {error.strerror}", "choose another folder") from None
