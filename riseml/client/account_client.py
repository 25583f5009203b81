"""The client of the routes of users, keys, team projects and members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.client.exchange import Exchange, format_path

if TYPE_CHECKING:
    from riseml import wire
else:
    from riseml.client.answer_check import WIRE_NAMES as wire


class AccountClient:
    """Asks for accounts, and changes them.

    Args:
        exchange: the connections to the server, which the caller closes.

    Raises:
        RisemlError: every method raises the error that the server refused with, or `Unreachable`.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def get_caller(self) -> wire.CallerView:
        """Return who this client is for the server."""
        return self._exchange.request_answer("GET", "/whoami", wire.CallerView)

    def get_login_offers(self) -> wire.LoginOffers:
        """Return how users log in; this needs no key."""
        return self._exchange.request_answer("GET", "/login", wire.LoginOffers)

    def begin_device_login(self) -> wire.DeviceLogin:
        """Begin a login at the organisation's provider; this needs no key."""
        return self._exchange.request_answer("POST", "/login/device", wire.DeviceLogin)

    def ask_for_session(self, login: str) -> wire.DeviceSession:
        """Return the session of a login that its user has confirmed, or when to ask again."""
        return self._exchange.request_answer("POST", "/login/device/session", wire.DeviceSession, json={"login": login})

    def list_users(self) -> list[wire.UserView]:
        """Return all users."""
        return self._exchange.request_answer("GET", "/users", wire.UserList)["users"]

    def get_user(self, name: str) -> wire.UserView:
        """Return a user."""
        return self._exchange.request_answer("GET", format_path("users", name), wire.UserView)

    def create_user(self, request: wire.NewUserRequest) -> wire.NewUserView:
        """Make a user, and return them with their first key."""
        return self._exchange.request_answer("POST", "/users", wire.NewUserView, json=request)

    def change_user(self, name: str, request: wire.UserChangeRequest) -> wire.UserView:
        """Change a user, and return them."""
        return self._exchange.request_answer("POST", format_path("users", name), wire.UserView, json=request)

    def link_user(self, name: str, subject: str) -> wire.UserView:
        """Say which person of the organisation's provider a user is, and return the user."""
        path = format_path("users", name, "link")
        return self._exchange.request_answer("POST", path, wire.UserView, json={"subject": subject})

    def list_keys(self, user: str | None = None, *, all_users: bool = False) -> list[wire.KeyView]:
        """Return the keys of the caller, of a user, or of all users."""
        query = ({"user": user} if user is not None else {}) | ({"all_users": "true"} if all_users else {})
        return self._exchange.request_answer("GET", "/keys", wire.KeyList, params=query)["keys"]

    def create_key(self, request: wire.NewKeyRequest) -> wire.NewKeyView:
        """Make a key, and return it: it cannot be read again."""
        return self._exchange.request_answer("POST", "/keys", wire.NewKeyView, json=request)

    def revoke_key(self, key: str) -> wire.KeyView:
        """End a key, and return it."""
        return self._exchange.request_answer("POST", format_path("keys", key, "revoke"), wire.KeyView)

    def list_sessions(self, user: str | None = None) -> wire.Sessions:
        """Return the sessions of the caller, of a user, or with `*` of all users."""
        query = {} if user is None else {"user": user}
        return self._exchange.request_answer("GET", "/sessions", wire.Sessions, params=query)

    def end_session(self, session: str) -> wire.Sessions:
        """End a session, and return the caller's others."""
        return self._exchange.request_answer("POST", format_path("sessions", session, "end"), wire.Sessions)

    def list_projects(self) -> list[wire.TeamProjectView]:
        """Return the team projects that the caller sees."""
        return self._exchange.request_answer("GET", "/projects", wire.TeamProjectList)["projects"]

    def get_project(self, name: str) -> wire.TeamProjectView:
        """Return a team project."""
        return self._exchange.request_answer("GET", format_path("projects", name), wire.TeamProjectView)

    def create_project(self, request: wire.NewProjectRequest) -> wire.TeamProjectView:
        """Make a team project, and return it."""
        return self._exchange.request_answer("POST", "/projects", wire.TeamProjectView, json=request)

    def open_project(self, name: str, *, is_open: bool) -> wire.TeamProjectView:
        """Show the experiments of a project to every user, or to its members alone; return the project."""
        path = format_path("projects", name)
        return self._exchange.request_answer("POST", path, wire.TeamProjectView, json={"open": is_open})

    def delete_project(self, name: str) -> wire.TeamProjectView:
        """Remove a team project, and return what it was. Its experiments stay."""
        return self._exchange.request_answer("POST", format_path("projects", name, "remove"), wire.TeamProjectView)

    def put_member(self, project: str, user: str, request: wire.MemberRequest) -> wire.TeamProjectView:
        """Make a user a member of a project, or give a member another role; return the project."""
        path = format_path("projects", project, "members", user)
        return self._exchange.request_answer("POST", path, wire.TeamProjectView, json=request)

    def remove_member(self, project: str, user: str) -> wire.TeamProjectView:
        """End a membership, and return the project."""
        path = format_path("projects", project, "members", user, "remove")
        return self._exchange.request_answer("POST", path, wire.TeamProjectView)
