"""The names of users and team projects, and the uids of users: what is allowed."""

from __future__ import annotations

import re

from riseml.base.errors import UsageError

DEFAULT_KEY_DAYS = 90
MOST_KEY_DAYS = 366
LONGEST_SUBJECT = 255  # characters of a person's name at a provider, as OpenID Connect has it
NO_UID = -1
"""The uid and gid of a user to whom no admin has given one: their jobs cannot start."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_EMAIL = re.compile(r"[^\s@\x00-\x1f\x7f]{1,64}@[^\s@\x00-\x1f\x7f]{1,189}")
_FIRST_ID = 1000  # below it are root and the services of the system
_SERVICES = range(61_184, 65_536)  # systemd's dynamic users, nobody, and (uid_t) -1 of 16 bits
_END_OF_IDS = 2**31 - 1  # some programs read a uid as a number with a sign


def is_account_name(text: str) -> bool:
    """Return True for a text that may be the name of a user or a team project."""
    return _NAME.fullmatch(text) is not None


def check_account_name(kind: str, name: str) -> str:
    """Return the name of a user or a team project.

    Args:
        kind: what has the name, for the message: `user`, `project`.
        name: as someone has typed it.

    Raises:
        UsageError: it is not allowed.
    """
    if not is_account_name(name):
        raise UsageError(
            f"{name[:80]!r} is not a name for a {kind}",
            "a name has 1 to 32 small letters a-z, digits and `-`, a letter first: paul, vision-lab",
        )
    return name


def check_ids(uid: int | None, gid: int | None) -> None:
    """Refuse a uid or gid that belongs to root or to a service of the system; None is not given.

    Raises:
        UsageError: it does.
    """
    for kind, number in (("uid", uid), ("gid", gid)):
        if number is not None and (not _FIRST_ID <= number < _END_OF_IDS or number in _SERVICES):
            raise UsageError(
                f"{kind} {number} is not for users: jobs would have the rights of the system",
                f"give a {kind} from {_FIRST_ID} to {_SERVICES.start - 1}",
            )


def check_email(text: str) -> str:
    """Return an e-mail address; empty for none.

    Raises:
        UsageError: it is not one.
    """
    if text and _EMAIL.fullmatch(text) is None:
        raise UsageError(f"{text[:80]!r} is not an e-mail address", "write it as paul@example.org")
    return text


def check_subject(text: str) -> str:
    """Return the subject of a person at the organisation's provider, which the claim `sub` has.

    Raises:
        UsageError: it is none.
    """
    if not 0 < len(text) <= LONGEST_SUBJECT or not text.isprintable():
        raise UsageError(f"{text[:80]!r} is not a subject", "copy the claim `sub`, which a refused login shows")
    return text
