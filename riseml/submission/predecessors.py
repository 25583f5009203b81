"""The experiments that a run waits for, as a user names them: `4`, `4:any`, `baseline`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from riseml.base.errors import UsageError
from riseml.client.identities import check_identities, find_identity

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client

MOST = 100
"""Experiments that one run waits for."""

_ANY = ":any"


def check_predecessors(texts: Iterable[str], option: str) -> list[str]:
    """Return these texts, after checking them without a server.

    Args:
        texts: IDs, names or tags, which may end with `:any`.
        option: how the user has given them: `--after`.

    Raises:
        UsageError: one is none of these, or there are too many.
    """
    checked = [text.strip() for text in texts]
    for text in checked:
        name, mark, condition = text.partition(":")
        if mark and f":{condition}" != _ANY:
            hint = f"write {option} {name}, or {option} {name}{_ANY} to start however {name} ended"
            raise UsageError(f"{option} {text!r} has the condition {condition!r}", hint)
        check_identities([name])
    if len(checked) > MOST:
        raise UsageError(f"{option} names {len(checked)} experiments", f"a run waits for at most {MOST}")
    return checked


def name_predecessors(client: Client, submission: wire.Submission) -> None:
    """Put IDs in the place of the names and tags of the experiments that a submission waits for.

    Raises:
        NotFound: there is no such experiment.
        UsageError: several experiments have the name or tag.
    """
    if "after" in submission:
        submission["after"] = [_find(client, text) for text in submission["after"]]


def _find(client: Client, text: str) -> str:
    name, mark, condition = text.partition(":")
    return f"{find_identity(client, name)}{mark}{condition}"
