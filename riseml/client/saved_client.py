"""The client of the routes of saved outputs: list what is in the object store, and copy now."""

from __future__ import annotations

from typing import Self, cast
from urllib.parse import quote

from riseml import wire
from riseml.client.exchange import Address, Exchange


class SavedClient:
    """Asks for the saved outputs of experiments.

    Args:
        address: where the server is.
    """

    def __init__(self, address: Address) -> None:
        self._exchange = Exchange(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exchange.close()

    def get_saved(self, identity: str) -> wire.SavedView:
        """Return what of an experiment's output is in its store."""
        return cast("wire.SavedView", self._exchange.request_json("GET", _name_route(identity, "saved")))

    def save_output(self, identity: str, keys: wire.StoreKeys | None = None) -> None:
        """Let the server copy an experiment's output into its store now; it goes on after the answer.

        Args:
            identity: of the experiment.
            keys: of the user, for this copy alone; None: those of the server, or that the experiment passed on.
        """
        order: wire.SaveRequest = {} if keys is None else {"keys": keys}
        self._exchange.request_json("POST", _name_route(identity, "save"), json=order)


def _name_route(identity: str, last: str) -> str:
    return f"/experiments/{quote(identity, safe='')}/{last}"
