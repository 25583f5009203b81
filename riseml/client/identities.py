"""The words by which users name experiments, sets and jobs: an ID, a name or a tag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riseml.client.server_client import Client

_LONGEST_WORD = 200  # characters of an ID, a name or a tag with what follows it


def find_identity(client: Client, text: str) -> str:
    """Return the canonical ID of an experiment, a set or a job that a user has named by its ID, a name or a tag.

    Raises:
        UsageError: the text is none of these, or several experiments have it.
    """
    from riseml.base.names import looks_like_id, parse_id

    if looks_like_id(text.strip()):
        canonical_id = parse_id(text)
        if canonical_id.user is None:  # else it may be a member of a set with a name: `baseline.2`
            return str(canonical_id)
    else:
        check_identities([text])
    return str(parse_id(client.find_id(text)))


def check_identities(texts: Iterable[str]) -> None:
    """Refuse texts that are neither an ID nor a name or tag, before a server is asked.

    Raises:
        UsageError: there is one.
    """
    from riseml.base.annotations import is_word
    from riseml.base.names import parse_id

    for text in texts:
        if len(text) > _LONGEST_WORD or not is_word(text):
            parse_id(text)
