"""Users, keys, team projects and their members: of a team's server."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from annotated_types import Ge, Le, MaxLen, MinLen
from typing_extensions import TypedDict

from riseml.base.accounts import LONGEST_SUBJECT, MOST_KEY_DAYS

_NAME = 80  # characters: the server says of a longer name that it is one, and of a shorter one what is wrong
_LONGEST_EMAIL = 254
_HIGHEST_ID = 2**32

UserRole = Literal["viewer", "member", "admin"]
ProjectRole = Literal["viewer", "member", "maintainer"]
KeyScope = Literal["read", "run", "admin"]
AccountName = Annotated[str, MaxLen(_NAME)]
_IdNumber = Annotated[int, Ge(-_HIGHEST_ID), Le(_HIGHEST_ID)]


class CallerProject(TypedDict):
    """A team project of a user, and what they are in it."""

    project: str
    role: ProjectRole


class CallerView(TypedDict):
    """Who sends this request, and what they may do."""

    user: str
    role: UserRole
    uid: int | None  # of their jobs and outputs; null: no admin has said it, and they cannot run jobs
    gid: int | None
    scope: KeyScope
    key: str  # id of the key or session; empty on the server's own machine
    project: str | None  # the one project to which the key is bound
    projects: list[CallerProject]
    team: bool  # false: the server has one user


class UserView(TypedDict):
    """One user of a team's server."""

    name: str
    role: UserRole
    uid: int | None
    gid: int | None
    disabled: bool
    email: str
    created_at: str


class UserList(TypedDict):
    """The users of a team's server, by name."""

    users: list[UserView]


class NewUserRequest(TypedDict):
    """A user to be made. Without a gid, it is the number of the uid."""

    name: AccountName
    role: NotRequired[UserRole]  # member without it
    uid: NotRequired[_IdNumber]
    gid: NotRequired[_IdNumber]
    email: NotRequired[Annotated[str, MaxLen(_LONGEST_EMAIL)]]
    shared_uid: NotRequired[bool]  # another user may have the same uid


class UserLinkRequest(TypedDict):
    """Which person of the organisation's provider a user is."""

    subject: Annotated[str, MinLen(1), MaxLen(LONGEST_SUBJECT)]  # the claim `sub`


class UserChangeRequest(TypedDict):
    """What an admin changes about a user. What is not named stays."""

    role: NotRequired[UserRole]
    uid: NotRequired[_IdNumber]
    gid: NotRequired[_IdNumber]
    email: NotRequired[Annotated[str, MaxLen(_LONGEST_EMAIL)]]
    disabled: NotRequired[bool]
    shared_uid: NotRequired[bool]


class KeyView(TypedDict):
    """One API key, without the key."""

    id: str
    user: str
    name: str
    tail: str  # the last eight characters of the key
    scope: KeyScope
    project: str | None
    state: Literal["valid", "expired", "revoked"]
    created_at: str
    expires_at: str
    used_at: str | None  # within a minute; null: never
    revoked_at: str | None


class KeyList(TypedDict):
    """Keys, the oldest first."""

    keys: list[KeyView]


class NewKeyRequest(TypedDict):
    """A key to be made."""

    user: NotRequired[AccountName]  # the caller without it
    name: NotRequired[Annotated[str, MaxLen(_NAME)]]
    scope: NotRequired[KeyScope]  # that of the caller's key without it
    project: NotRequired[AccountName]
    days: NotRequired[Annotated[int, Ge(1), Le(MOST_KEY_DAYS)]]


class NewKeyView(TypedDict):
    """A key that was just made. Nobody can read it again."""

    secret: str  # the key
    key: KeyView


class NewUserView(TypedDict):
    """A user that was just made, and their first key."""

    user: UserView
    secret: str  # the key, which nobody can read again
    key: KeyView


class MemberView(TypedDict):
    """A member of a team project."""

    user: str
    role: ProjectRole


class TeamProjectView(TypedDict):
    """A project that users share."""

    name: str
    open: bool  # every user of the server sees its experiments
    created_at: str
    members: list[MemberView]


class TeamProjectList(TypedDict):
    """The projects that the caller sees, by name."""

    projects: list[TeamProjectView]


class NewProjectRequest(TypedDict):
    """A project to be made."""

    name: AccountName
    open: NotRequired[bool]


class ProjectChangeRequest(TypedDict):
    """Whether every user sees the experiments of a project, or its members alone."""

    open: bool


class MemberRequest(TypedDict):
    """What a user becomes in a project."""

    role: ProjectRole
