"""`profile`: where a running job spends its time, as hot lines, a flame graph and a file for speedscope."""

from __future__ import annotations

import hashlib
import json as json_format
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.names import parse_id
from riseml.cli.commands.jobs import OptionalJobArgument, choose_job
from riseml.cli.commands.options import JsonOption

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client

_FOLDER = "profiles"


def profile_job(
    context: typer.Context,
    identity: OptionalJobArgument = None,
    *,
    seconds: Annotated[int, typer.Option("--seconds", min=1, max=90, metavar="N", help="Record for N seconds.")] = 30,
    rate: Annotated[int, typer.Option("--rate", min=1, max=1000, metavar="N", help="Take N samples a second.")] = 100,
    native: Annotated[bool, typer.Option("--native", help="Show calls of C, C++ and Rust libraries, too.")] = False,
    idle: Annotated[bool, typer.Option("--idle", help="Count threads that wait, too.")] = False,
    json: JsonOption = False,
) -> None:
    """Record where a running job spends its time.

    riseml samples the Python processes of the job from outside: nothing in the code has to change. It prints the
    hottest lines, and puts a flame graph (SVG) and a file for speedscope.app into the output of the experiment.
    """
    from riseml.cli.output.stacks_view import list_profile

    command: CommandContext = context.obj
    request: wire.ProfileOptions = {"seconds": seconds, "rate": rate, "native": native, "idle": idle}
    with command.connect() as client:
        job = choose_job(command, client, identity)
        if not json:
            command.printer.say(f"Recording {job} for {seconds} s. The job goes on.")
        profile = client.profile_job(job, request)
        files = _save_files(client, job, profile)
    if json:
        command.printer.print_json(profile)
    else:
        command.printer.print_lines(list_profile(profile, files, command.printer.style))


def _save_files(client: Client, job: str, profile: wire.ProfileView) -> list[str]:
    """Put the flame graph and the file for speedscope into the output; return their addresses."""
    from riseml.client.file_client import StoragePlace
    from riseml.job_programs.folder_contents import FileUpload

    canonical_id = parse_id(job)
    place = StoragePlace("output", job.removesuffix(f".{canonical_id.job}"))
    storage = client.open_files(place)
    moment = "".join(letter for letter in profile["time"] if letter.isdigit() or letter in "TZ")
    contents = {"svg": profile["flame_graph"], "speedscope.json": json_format.dumps(profile["speedscope"])}
    addresses = []
    for ending, text in contents.items():
        path = f"{_FOLDER}/{canonical_id.job}-{moment}.{ending}"
        content = text.encode("utf-8", "replace")

        def read_from(offset: int, content: bytes = content) -> Iterator[bytes]:
            yield content[offset:]
            yield hashlib.sha256(content).digest()

        storage.write_file(FileUpload(path, "", len(content)), read_from)
        addresses.append(f"{place}/{path}")
    return addresses
