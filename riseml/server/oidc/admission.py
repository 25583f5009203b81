"""Which user of this server a person of the provider is, and whether they may come in.

A user is made at the first login when a group of the person has a role in server.yml, and belongs to that person from
then on. The role follows the groups at each login and each refresh.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from datetime import datetime

from riseml.base.accounts import check_account_name, check_email
from riseml.base.errors import Conflict, NotFound, Refused, UsageError
from riseml.base.records import dataclass
from riseml.base.roles import Role
from riseml.server.oidc.identity import Identity, choose_role
from riseml.spec.server.types import OidcSection
from riseml.store.accounts import AccountStore, User, UserChange
from riseml.store.provider_subjects import ProviderSubjects

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Admission:
    """Admits the persons of one provider.

    Example:
        user = Admission(section, accounts, subjects, has_uid, forget_looks).admit(identity, now())
    """

    config: OidcSection
    accounts: AccountStore
    subjects: ProviderSubjects
    has_uid: Callable[[str], bool]  # returns True for a user whose jobs have a uid by server.yml
    forget_looks: Callable[[], None]  # is called when a role has changed

    def admit(self, identity: Identity, moment: datetime) -> User:
        """Return the user that a person is, with the role of their groups.

        Raises:
            Refused: no group has a role, the user is disabled or is another person, or has no uid.
            UsageError: the name is not one of a user.
        """
        role = choose_role(identity.groups, self.config.roles)
        if role is None:
            raise Refused(
                f"{identity.name[:80]!r} may not use this server: none of their groups has a role here",
                "an admin names a group in oidc.roles of server.yml, or the organisation adds you to one",
            )
        name = check_account_name("user", identity.name)
        bound = self.subjects.find_user(self.config.issuer, identity.subject)
        if bound is not None and bound != name:
            raise Refused(f"the provider calls you {name} now, and you are {bound} here", "ask an admin of this server")
        user = self._find(name)
        if bound is None:
            return self._make(name, role, identity, user, moment)
        if user is None or user.disabled:
            raise Refused(f"the user {name} is disabled", "ask an admin of this server")
        if user.role is not role:
            user = self.accounts.change_user(name, UserChange(role=role))
            self.forget_looks()
            log.info("the provider's groups make %s a %s", name, role.value)
        return user

    def _find(self, name: str) -> User | None:
        try:
            return self.accounts.load_user(name)
        except NotFound:
            return None

    def _make(self, name: str, role: Role, identity: Identity, user: User | None, moment: datetime) -> User:
        """Store a new user of this name, who is the person."""
        if user is not None:
            raise Conflict(
                f"{name} is another person here: the user was made by an admin, or belongs to another subject",
                f"an admin says that they are one: `riseml user link {name} {_show_subject(identity.subject)}`",
            )
        if not self.has_uid(name):
            raise Refused(
                f"{name} has no uid on this server, and so could run no job",
                "an admin adds them to users.ids of server.yml",
            )
        new_user = User(name, role, moment, email=_read_email(identity.email))
        self.subjects.add_user(new_user, self.config.issuer, identity.subject)
        log.info("%s has logged in at the provider for the first time, as a %s", name, role.value)
        return new_user


def _read_email(text: str) -> str:
    """Return an e-mail address; empty for what is none: a person may come in without one."""
    try:
        return check_email(text)
    except UsageError:
        return ""


def _show_subject(subject: str) -> str:
    """Return a subject as an admin can paste it behind a command: a provider may write anything into it."""
    if not subject.isprintable():
        return repr(subject)
    return f"-- {shlex.quote(subject)}" if subject.startswith("-") else shlex.quote(subject)
