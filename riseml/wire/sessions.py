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


class DeviceLogin(TypedDict):
    """The login of a command at the provider has begun."""

    login: str  # names it; the command alone knows this
    code: str  # the user types it at the provider
    url: str  # where
    whole_url: str | None  # with the code
    expires_in: float  # seconds
    interval: float  # seconds until the command asks for its session


class DeviceSession(TypedDict):
    """The session of a command, once its user has confirmed the login."""

    secret: str | None  # lets the command in; null: not confirmed yet
    user: str | None
    wait: float  # seconds until the command may ask again


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
