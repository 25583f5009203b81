"""The login of a command at the organisation's provider: the user opens an address anywhere, and confirms a code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from riseml.base.errors import NotFound, Refused, Unauthenticated, Unreachable

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext
    from riseml.client.account_client import AccountClient

API_KEY = re.compile(r"[!-~]{1,512}")
"""What a key, or the secret of a session, looks like."""

_SHORTEST_WAIT = 1.0  # seconds between two questions, whatever the server says
_LONGEST_WAIT = 60.0  # seconds


def log_in_at_provider(command: CommandContext, accounts: AccountClient) -> str | None:
    """Return the secret of a session that the user has confirmed at the provider; None: the server has no such login.

    Raises:
        Refused: the user or the provider has refused it, or it came too late.
        Unreachable: the server or the provider does not answer.
    """
    try:
        provider = accounts.get_login_offers()["provider"]
    except (NotFound, Unauthenticated):  # a server without logins
        return None
    if provider is None:
        return None
    try:
        login = accounts.begin_device_login()
    except Refused as error:
        command.printer.warn(f"{error.message}: a key is needed")
        return None
    lines = [f"Open {login['url']} and type the code {login['code']}"]
    if login["whole_url"] is not None:
        lines.append(f"or open {login['whole_url']}")
    command.printer.say(*lines, f"Waiting for {provider}; with a key, use --key-file FILE instead.")
    pause = login["interval"]
    waited = 0.0
    while waited < login["expires_in"]:
        pause = max(_SHORTEST_WAIT, min(_LONGEST_WAIT, pause))
        command.wait(pause)
        waited += pause
        session = accounts.ask_for_session(login["login"])
        if session["secret"] is not None:
            return _check_secret(session["secret"])
        pause = session["wait"]
    raise Refused("nobody has confirmed this login in time", "run `riseml login` again")


def _check_secret(secret: str) -> str:
    """Return the secret of a session, which goes into a file and into headers.

    Raises:
        Unreachable: it is none.
    """
    if API_KEY.fullmatch(secret) is None:
        raise Unreachable("the server has answered with a session that is none", "ask the admin of this server")
    return secret
