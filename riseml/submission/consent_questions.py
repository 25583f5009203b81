"""The questions of commands before they send or start anything. A file in RISEML_HOME remembers each yes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.base.consent import (
    PassedVariable,
    describe_processes,
    make_process_refusal,
    read_consent,
    record_processes,
    record_variables,
)
from riseml.base.errors import Refused
from riseml.base.folders import check_home

if TYPE_CHECKING:
    from riseml.client.server_client import Client
    from riseml.submission.submitter import Submitter


def confirm_processes(submitter: Submitter, client: Client) -> None:
    """Ask once for each home whether jobs may run as processes, unless the command or the home already allows it.

    No question for a server at RISEML_SERVER: it refuses such jobs itself.

    Raises:
        Refused: the user says no, or there is no terminal.
    """
    settings = submitter.settings()
    if settings.executor is not None or client.address.socket is None:
        return
    server = client.recall_server()  # the state when the command connected
    missing = server["missing_engine"]
    if not missing and server["executor"] != "process":
        return
    if read_consent(settings.home).processes:
        return
    refusal = make_process_refusal(missing)
    if not submitter.asks:
        raise refusal
    why = describe_processes(missing)
    question = f"{why[:1].upper()}{why[1:]}. Jobs would run as you, with your files. Run them so, here and from now on?"
    if not submitter.ask(question):
        raise refusal
    record_processes(settings.home)


def confirm_variables(
    submitter: Submitter, variables: Sequence[PassedVariable], allowed: Sequence[str], file: str
) -> None:
    """Name the variables that a project passes on; ask once for each that neither `--allow-env` nor the home allows.

    Raises:
        Refused: the user says no, or there is no terminal. Nothing was sent.
    """
    if not variables:
        return
    names = _join_variables(variables)
    sentence = f"{file} passes {names} of your environment on to the code of project {variables[0].project}"
    submitter.messages.print_notes([sentence])
    home = submitter.settings().home
    check_home(home)  # another user must not be able to write the answer
    allowed_before = read_consent(home).variables
    new = [variable for variable in variables if variable.name not in allowed and variable not in allowed_before]
    if not new:
        return
    names = _join_variables(new)
    if not submitter.asks:
        options = " ".join(f"--allow-env {variable.name}" for variable in new)
        raise Refused(
            f"{file} asks for {names} of your environment, which you have not allowed; nothing was sent",
            f"`{options}` allows it for one run; `riseml train` on a terminal asks, and remembers a yes",
        )
    if not submitter.ask(f"Send {names}, now and whenever you train this project here?"):
        raise Refused(
            f"you did not allow {names}; nothing was sent", f"take it out of train.env in {file} to train without it"
        )
    record_variables(home, new)


def _join_variables(variables: Sequence[PassedVariable]) -> str:
    return ", ".join(variable.name for variable in variables)
