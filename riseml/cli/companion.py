"""Open a companion on this machine: wait until its program listens, forward its port, print its address."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.errors import Conflict, ExperimentFailed, Interrupted, NotFound, RisemlError
from riseml.base.records import dataclass
from riseml.base.states import NO_LOGS, NO_PROGRAM
from riseml.cli.job_command import ask_job
from riseml.cli.log_follower import open_footer
from riseml.client.port_forward import (
    HOST,
    ForwardRequest,
    PortPair,
    choose_local_port,
    find_answering_jobs,
    forward_ports,
)
from riseml.client.server_client import LogQuery
from riseml.submission.reconnection import make_reconnect

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.client.server_client import Client

_ERROR = "error: "  # prefix of the line in which a companion prints why it ends
_PORTS = 65536
_NOTE = "note: "  # prefix of a line for the user of the command


@dataclass(frozen=True, slots=True)
class CompanionView:
    """The options for opening a companion."""

    program: str  # its name for users: `TensorBoard`
    port: int  # port of the job, unless riseml chose another, and of this machine, when it is free
    local: int | None  # the port of this machine that the user has chosen; None: any
    json: bool
    opens: bool  # True: also open it in the browser


def check_local_port(view: CompanionView) -> None:
    """Check that the port that the user has chosen is free, before anything is started.

    Raises:
        Conflict: it is in use.
    """
    if view.local and not choose_local_port(view.local):
        problem = f"port {view.local} of this machine is in use, or this user may not listen on it"
        raise Conflict(problem, "choose another one, or leave --port out")


def wait_until_it_listens(command: CommandContext, client: Client, experiment: wire.ExperimentView, port: int) -> int:
    """Return the port of a companion's job, as soon as its program listens there.

    Args:
        command: the surroundings.
        client: of the server.
        experiment: the companion.
        port: of its program, unless riseml chose another one.

    Raises:
        NotFound: it has ended, and its log names a missing package.
        RisemlError: it has ended.
    """
    identity = experiment["id"]
    job = f"{identity}.{experiment['type']}"
    entries = client.stream_log(identity, LogQuery(), make_reconnect(command, client))
    with open_footer(command, client, identity) as note_entry, closing(entries):  # type: ignore[type-var]  # the client gives a generator, which has `close`
        for entry in entries:
            note_entry(entry)
            if entry["type"] == "end":
                raise _make_end_error(client, entry)
            if entry["type"] != "line":
                continue
            if entry["id"] != job:
                command.printer.print_notes([entry["text"]])
            elif entry["text"].startswith(_NOTE):
                command.printer.print_notes([entry["text"].removeprefix(_NOTE)])
            else:
                answering = find_port(client, job, port)
                if answering is not None:
                    return answering
    raise NotFound(f"the log of {identity} ended without its end", f"`riseml status {identity}`")


def find_port(client: Client, job: str, port: int) -> int | None:
    """Return the port on which a companion's program listens; None when it does not listen yet."""
    try:
        answer = ask_job(client.address, job, ("/bin/sh", "-c", f'echo "${{RISEML_PORT:-{port}}}"')).strip()
        chosen = int(answer) if re.fullmatch("[0-9]{1,5}", answer) and 0 < int(answer) < _PORTS else port
        find_answering_jobs(client.address, [job], chosen)
    except (NotFound, Conflict):  # it has just begun, or is about to end; the log will show which
        return None
    return chosen


def forward_companion(
    command: CommandContext, client: Client, view: CompanionView, place: tuple[str, int], describe: Callable[[str], str]
) -> None:
    """Forward until the user ends it.

    Args:
        command: the surroundings.
        client: of the server.
        view: how it is opened.
        place: the ID of the job, and its port.
        describe: makes the address that users open from that of the forward.

    Raises:
        KeyboardInterrupt: the user ended it.
        RisemlError: it has ended, or the server or the host does not answer.
    """
    job, port = place
    experiment = job.rpartition(".")[0]
    pages: list[Path] = []

    def say(used: Sequence[PortPair]) -> None:
        (pair,) = used
        address = describe(f"http://{HOST}:{pair.local}")
        forward: wire.ForwardView = {"job": job, "port": pair.remote, "address": address}
        if view.json:
            command.printer.print_json({"forwards": [forward]})
        else:
            command.printer.print_lines([f"{view.program} {experiment}: {address}"])
        if view.opens:
            pages.append(open_browser(address, command.settings().home))

    local = choose_local_port(view.port) if view.local is None else view.local
    try:
        request = ForwardRequest(job, [PortPair(local, port)], experiment)
        with client.watch_server():
            forward_ports(client.address, request, say, command.printer.say)
    finally:
        for page in pages:
            page.unlink(missing_ok=True)


def open_browser(address: str, folder: Path) -> Path:
    """Open an address in the user's browser, and return the page that leads to it, which the caller removes.

    Every user of the machine can read an address on a command line, and this one may contain a token. So the browser
    gets the name of a page that only its user can read. Some browsers block their caller until they are closed.
    """
    from riseml.cli.browser import open_in_browser

    page = write_leading_page(address, folder)
    open_in_browser(page.as_uri())
    return page


def write_leading_page(address: str, folder: Path) -> Path:
    """Write a page that leads to an address and that only its user can read, and return its path."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(suffix=".html", prefix="open-", dir=folder)  # mode 0600
    page = Path(name)
    with open(descriptor, "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(address)}">\n')
    return page


def _make_end_error(client: Client, end: wire.EndEntry) -> RisemlError:
    """Return why a companion has ended before it listened."""
    identity = end["id"]
    experiment = client.get_experiment(identity)
    lines = reversed(experiment["last_lines"] if end["exit_code"] in (NO_LOGS, NO_PROGRAM) else [])
    for line in lines:
        if line.startswith(_ERROR):
            return NotFound(line.removeprefix(_ERROR))
    if end["state"] == "KILLED":
        return Interrupted(f"{identity} was killed")
    package = {"tensorboard": "TensorBoard", "notebook": "JupyterLab"}.get(experiment["type"], "")
    if end["reason"] == "BUILD_FAILED":
        return ExperimentFailed(
            f"the environment has no {package}, or could not be made: {end['message']}",
            f"`riseml logs {identity}` shows the whole log; an image that has {package} needs no step",
        )
    message = end["message"].splitlines() or [""]
    return ExperimentFailed(
        f"{package} has ended before it listened ({end['state']}): {message[0]}", f"`riseml logs {identity}` says more"
    )
