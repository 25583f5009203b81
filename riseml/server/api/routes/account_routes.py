"""The routes of users, API keys, team projects and members: of a team's server. `/whoami` is that of every server."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from riseml import wire
from riseml.base.accounts import DEFAULT_KEY_DAYS, check_subject
from riseml.base.errors import NotFound, Refused
from riseml.base.roles import Role, Scope
from riseml.model import Caller
from riseml.server.api.callers import CallerOf
from riseml.server.api.views.account_views import show_caller, show_key, show_new_key, show_project, show_user
from riseml.server.clock import now
from riseml.server.gate.key_authenticator import KeyAuthenticator
from riseml.server.services import Services
from riseml.store.accounts import KeyRequest, NewKey, User, UserChange
from riseml.store.team_projects import TeamProject

AccountPath = Annotated[str, Path(max_length=80, description="the name of a user or a team project: paul, vision")]
KeyPath = Annotated[str, Path(max_length=80, description="the id of a key, as `riseml key list` shows it")]

_ONE_USER = "this server has one user, and no keys or team projects"
_MAKE_A_TEAM = "`riseml server init` makes the server of a team"

log = logging.getLogger(__name__)


def add_user_routes(router: APIRouter, services: Services) -> None:
    """Add /whoami and /users."""
    accounts = services.stores.accounts

    @router.get("/whoami")
    def read_caller(caller: CallerOf) -> wire.CallerView:
        return show_caller(caller, is_team=services.keys is not None)

    @router.get("/users")
    def list_users() -> wire.UserList:
        _find_keys(services)
        return {"users": [show_user(user) for user in accounts.list_users()]}

    @router.post("/users")
    def create_user(request: Annotated[wire.NewUserRequest, Body()]) -> wire.NewUserView:
        keys = _find_keys(services)
        user = User(
            name=request["name"],
            role=Role(request.get("role", Role.MEMBER.value)),
            created_at=now(),
            uid=request.get("uid"),
            gid=request.get("gid"),
            email=request.get("email", ""),
        )
        new_key = accounts.add_user(user, shared_uid=request.get("shared_uid", False))
        keys.forget_looks()
        log.info("the user %s was made", user.name)
        return {"user": show_user(accounts.load_user(user.name)), **show_new_key(new_key, now())}

    @router.get("/users/{name}")
    def read_user(name: AccountPath, caller: CallerOf) -> wire.UserView:
        _find_keys(services)
        if caller.role is not Role.ADMIN and caller.user != name:
            raise NotFound(f"there is no user {name}", "`riseml user list` shows them")
        return show_user(accounts.load_user(name))

    @router.post("/users/{name}")
    def change_user(name: AccountPath, request: Annotated[wire.UserChangeRequest, Body()]) -> wire.UserView:
        keys = _find_keys(services)
        change = UserChange(
            role=Role(request["role"]) if "role" in request else None,
            uid=request.get("uid"),
            gid=request.get("gid"),
            disabled=request.get("disabled"),
            email=request.get("email"),
            shared_uid=request.get("shared_uid", False),
        )
        user = accounts.change_user(name, change)
        keys.forget_looks()
        log.info("the user %s was changed: %s", name, ", ".join(sorted(request)) or "nothing")
        return show_user(user)

    @router.post("/users/{name}/link")
    def link_user(
        name: AccountPath, caller: CallerOf, request: Annotated[wire.UserLinkRequest, Body()]
    ) -> wire.UserView:
        keys = _find_keys(services)
        oidc = None if services.config is None else services.config.oidc
        if oidc is None:
            raise Refused("this server uses no provider to log in", "add `oidc` to server.yml, and restart it")
        services.stores.provider_subjects.link_user(name, oidc.issuer, check_subject(request["subject"]))
        services.stores.sessions.end_of_provider(name)  # which may be another person's
        keys.forget_looks()
        log.info("the user %s is the person %s of the provider, says %s", name, request["subject"], caller.user)
        return show_user(accounts.load_user(name))


def add_key_routes(router: APIRouter, services: Services) -> None:
    """Add /keys, and the end of a key."""
    accounts = services.stores.accounts

    @router.get("/keys")
    def list_keys(
        caller: CallerOf,
        *,
        user: Annotated[str | None, Query(max_length=80, description="whose keys; without it, the caller's")] = None,
        all_users: Annotated[bool, Query(description="the keys of all users")] = False,
    ) -> wire.KeyList:
        keys = _find_keys(services)
        chosen = None if all_users else user or caller.user
        if caller.role is not Role.ADMIN and chosen != caller.user:
            raise Refused("only an admin sees keys of other users", "`riseml key list` shows yours")
        if chosen is not None:
            accounts.load_user(chosen)
        keys.store_uses()
        moment = now()
        return {"keys": [show_key(key, moment) for key in accounts.list_keys(chosen)]}

    @router.post("/keys")
    def create_key(caller: CallerOf, request: Annotated[wire.NewKeyRequest, Body()]) -> wire.NewKeyView:
        _find_keys(services)
        new_key = _add_key(services, caller, request)
        log.info("the key %s of %s was made by %s", new_key.key.id, new_key.key.user, caller.user)
        return show_new_key(new_key, now())

    @router.post("/keys/{key}/revoke")
    def revoke_key(key: KeyPath, caller: CallerOf) -> wire.KeyView:
        keys = _find_keys(services)
        if caller.role is not Role.ADMIN and accounts.load_key(key).user != caller.user:
            raise NotFound(f"there is no key {key}", "`riseml key list` shows yours")
        revoked = accounts.revoke_key(key, now())
        keys.forget_looks()
        log.info("the key %s of %s was revoked by %s", key, revoked.user, caller.user)
        return show_key(revoked, now())


def _add_key(services: Services, caller: Caller, request: wire.NewKeyRequest) -> NewKey:
    """Make a key that may do no more than the caller's own.

    Raises:
        Refused: it would be another user's, and the caller is no admin; or it would be bound less than the caller's.
        NotFound: the caller does not see the project.
        RisemlError: as `AccountStore.add_key`.
    """
    user = request.get("user", caller.user)
    if caller.role is not Role.ADMIN and user != caller.user:
        raise Refused("only an admin makes keys for other users", "`riseml key create` makes one for you")
    project = request.get("project", caller.project)
    if caller.project is not None and project != caller.project:
        raise Refused(
            f"your key is bound to the project {caller.project}, and can make only keys that are bound to it",
            "log in with a key that is bound to no project",
        )
    if project is not None:
        _find_project(services, caller, project)
    return services.stores.accounts.add_key(
        KeyRequest(
            user=user,
            scope=Scope(request["scope"]) if "scope" in request else caller.scope,
            project=project,
            days=request.get("days", DEFAULT_KEY_DAYS),
            name=request.get("name", ""),
        ),
        now(),
    )


def add_project_routes(router: APIRouter, services: Services) -> None:
    """Add /projects and their members."""
    projects = services.stores.team_projects

    @router.get("/projects")
    def list_projects(caller: CallerOf) -> wire.TeamProjectList:
        _find_keys(services)
        return {"projects": [show_project(each) for each in projects.list_projects() if _sees_project(caller, each)]}

    @router.post("/projects")
    def create_project(caller: CallerOf, request: Annotated[wire.NewProjectRequest, Body()]) -> wire.TeamProjectView:
        _find_keys(services)
        project = projects.add_project(request["name"], now(), is_open=request.get("open", False))
        log.info("the project %s was made by %s", project.name, caller.user)
        return show_project(project)

    @router.get("/projects/{name}")
    def read_project(name: AccountPath, caller: CallerOf) -> wire.TeamProjectView:
        _find_keys(services)
        return show_project(_find_project(services, caller, name))

    @router.post("/projects/{name}")
    def change_project(
        name: AccountPath, caller: CallerOf, request: Annotated[wire.ProjectChangeRequest, Body()]
    ) -> wire.TeamProjectView:
        keys = _find_keys(services)
        _check_maintainer(services, caller, name)
        project = projects.open_project(name, is_open=request["open"])
        keys.forget_looks()
        log.info("the project %s was %s by %s", name, "opened" if project.open else "closed", caller.user)
        return show_project(project)

    @router.post("/projects/{name}/remove")
    def delete_project(name: AccountPath, caller: CallerOf) -> wire.TeamProjectView:
        keys = _find_keys(services)
        project = projects.remove_project(name, now())
        keys.forget_looks()
        log.info("the project %s was removed by %s", name, caller.user)
        return show_project(project)

    @router.post("/projects/{name}/members/{user}")
    def put_member(
        name: AccountPath, user: AccountPath, caller: CallerOf, request: Annotated[wire.MemberRequest, Body()]
    ) -> wire.TeamProjectView:
        keys = _find_keys(services)
        _check_maintainer(services, caller, name)
        project = projects.put_member(name, user, Role(request["role"]))
        keys.forget_looks()
        log.info("%s became %s of the project %s by %s", user, request["role"], name, caller.user)
        return show_project(project)

    @router.post("/projects/{name}/members/{user}/remove")
    def remove_member(name: AccountPath, user: AccountPath, caller: CallerOf) -> wire.TeamProjectView:
        keys = _find_keys(services)
        if user != caller.user:
            _check_maintainer(services, caller, name)
        else:
            _find_project(services, caller, name)
        project = projects.remove_member(name, user)
        keys.forget_looks()
        log.info("%s was removed from the project %s by %s", user, name, caller.user)
        return show_project(project)


def _find_keys(services: Services) -> KeyAuthenticator:
    """Return what knows the keys of a team's server.

    Raises:
        Refused: the server has one user.
    """
    if services.keys is None:
        raise Refused(_ONE_USER, _MAKE_A_TEAM)
    return services.keys


def _sees_project(caller: Caller, project: TeamProject) -> bool:
    if caller.project not in (None, project.name):
        return False
    return caller.role is Role.ADMIN or project.open or any(user == caller.user for user, _ in project.members)


def _find_project(services: Services, caller: Caller, name: str) -> TeamProject:
    """Return a project that the caller sees.

    Raises:
        NotFound: there is none: the words are those of a project that does not exist.
    """
    project = services.stores.team_projects.load_project(name)
    if not _sees_project(caller, project):
        raise NotFound(f"there is no project {name}", "`riseml project list` shows them")
    return project


def _check_maintainer(services: Services, caller: Caller, name: str) -> None:
    """Refuse a caller who may not change a project.

    Raises:
        NotFound: the caller does not see it.
        Refused: the caller sees it, and is neither its maintainer nor an admin.
    """
    project = _find_project(services, caller, name)
    if caller.role is not Role.ADMIN and (caller.user, Role.MAINTAINER) not in project.members:
        raise Refused(f"you are not a maintainer of {name}", f"`riseml project show {name}` shows who is")
