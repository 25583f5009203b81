"""Who the provider says someone is: the claims that riseml reads, and the role that their groups give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from riseml.base.accounts import LONGEST_SUBJECT
from riseml.base.errors import Refused
from riseml.base.records import dataclass
from riseml.base.roles import Role

_MOST_GROUPS = 2_000


@dataclass(frozen=True, slots=True)
class Identity:
    """One person, by the claims of the provider."""

    subject: str  # never changes, and never is another person's
    name: str  # of the user; the provider may change it
    groups: tuple[str, ...]
    email: str = ""


def read_identity(claims: Mapping[str, object], user_claim: str, groups_claim: str) -> Identity:
    """Return the person of some checked claims.

    Args:
        claims: of an ID token, with those of /userinfo where it has more.
        user_claim: names the claim with the name of the user.
        groups_claim: names the claim with the groups: a list of texts, or one text.

    Raises:
        Refused: the provider does not say who it is.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
        raise Refused("the provider does not say who logs in: there is no claim sub", "ask the admin of the provider")
    name = claims.get(user_claim)
    if not isinstance(name, str) or not name:
        raise Refused(
            f"the provider sends no claim {user_claim}, which has the names of users here",
            "an admin adds a scope to oidc.scopes of server.yml, or names another claim in oidc.user_claim",
        )
    email = claims.get("email")
    return Identity(subject, name, _read_groups(claims.get(groups_claim)), email if isinstance(email, str) else "")


def _read_groups(claim: object) -> tuple[str, ...]:
    if isinstance(claim, str):
        return (claim,)
    groups = claim if isinstance(claim, list) else []
    return tuple(group for group in groups[:_MOST_GROUPS] if isinstance(group, str))


def choose_role(groups: Sequence[str], roles: Sequence[tuple[str, str]]) -> Role | None:
    """Return the highest role that some groups give; None: they give none.

    Args:
        groups: of one person.
        roles: a group, and the role that it gives.
    """
    group_roles = [Role(role) for group, role in roles if group in groups]
    return max(group_roles, default=None)
