"""Reach a lost server again, for what follows an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riseml.client.exchange import OnCut
    from riseml.client.server_client import Client
    from riseml.submission.submitter import Submitter

_RESTART_TRY = 3  # failed requests (about a second) before the user's own server is started


def make_reconnect(submitter: Submitter, client: Client) -> OnCut:
    """Return the function that the client calls when the server is lost, with the number of failed requests so far.

    The function tells the user once that the server is lost, and starts the user's own server when no other command
    does, as often as it is lost, with pauses that grow.
    """
    server = 0  # the process of the server that answered last

    def reconnect(tries: int) -> bool:
        nonlocal server
        if tries == 0:
            submitter.messages.say("Lost the riseml server; connecting again. The experiment goes on.")
        if tries < _RESTART_TRY or client.address.socket is None:
            return False
        from riseml.submission.local_server import restore_server

        before = server
        server = restore_server(client, submitter.settings(), submitter.messages.say)["pid"]
        return server != before

    return reconnect
