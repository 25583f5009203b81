"""How users log in at a team's server, and the sessions that they then have."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class LoginOffers(TypedDict):
    """How users log in."""

    keys: bool  # with an API key
    provider: str | None  # name of the organisation's provider of OpenID Connect; null: the server uses none


class PageLogin(TypedDict):
    """The session of a browser that has logged in; its cookie comes beside it."""

    session: str  # `<id>.<page key>`


class SessionView(TypedDict):
    """A session of a browser or of a command."""

    id: str
    user: str
    kind: Literal["page", "device"]  # a browser, or a command that logged in at the provider
    created_at: str
    used_at: str  # exact to a minute
    expires_at: str
    user_agent: str
    address: str  # from which it was opened
    key: str | None  # id of the key that opened it; null: the provider did


class Sessions(TypedDict):
    """Sessions at a team's server."""

    user: str  # who asks
    sessions: list[SessionView]  # the newest first
