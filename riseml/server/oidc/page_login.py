"""The login of a browser at the provider: the code flow with PKCE (RFC 6749, RFC 7636, OpenID Connect Core 1.0).

What the server has to know when the browser comes back is in a signed cookie of that browser: the state, the nonce, the
verifier of PKCE, and the page that the user has asked for. So another browser cannot end the login that this one has
begun, and the server remembers nothing meanwhile.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from riseml.base.errors import Refused
from riseml.base.records import dataclass
from riseml.server.oidc.provider import LoggedIn, Provider
from riseml.server.web.page_proofs import is_equal

PAGE_LOGIN_LIFE = 600.0
"""Seconds in which a user logs in at the provider."""

_AGAIN = "begin again at the page of this server"
_PATH = re.compile(r"/(?![/\\])[\x21-\x7e]{0,500}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PageLoginStart:
    """The beginning of a login."""

    url: str  # at the provider
    cookie: str  # comes back with the browser


@dataclass(frozen=True, slots=True)
class _Ticket:
    """What the cookie says."""

    state: str
    nonce: str
    verifier: str
    page: str  # that the user has asked for
    until: float  # seconds since 1970


class PageLogins:
    """Begins and ends logins of browsers.

    Args:
        provider: where users log in.
        sign: returns the signature of a text with the key of the server.
        redirect: the one address to which the provider may send browsers, as it knows it.
        clock: seconds since 1970.
    """

    def __init__(
        self, provider: Provider, sign: Callable[[str], str], redirect: str, clock: Callable[[], float]
    ) -> None:
        self._provider = provider
        self._sign = sign
        self._redirect = redirect
        self._clock = clock

    @property
    def host(self) -> str:
        """The host and port at which logins begin and end: cookies of another name do not come back."""
        return urlsplit(self._redirect).netloc

    def begin(self, page: str) -> PageLoginStart:
        """Begin a login.

        Args:
            page: path and query of the page that the user has asked for; another text means the first page.

        Raises:
            Unreachable: the provider does not answer.
            Refused: it is not the provider that server.yml names.
        """
        own_page = page if _PATH.fullmatch(page) else "/"
        ticket = _Ticket(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(32),
            page=own_page,
            until=self._clock() + PAGE_LOGIN_LIFE,
        )
        url = self._provider.make_authorization_url(self._redirect, ticket.state, ticket.nonce, ticket.verifier)
        return PageLoginStart(url, self._write(ticket))

    def finish(self, query: Mapping[str, str], cookie: str) -> tuple[LoggedIn, str]:
        """Return who has logged in, and the page that they have asked for.

        Args:
            query: of the address to which the provider has sent the browser.
            cookie: of the browser.

        Raises:
            Unreachable: the provider does not answer.
            Refused: this browser has not begun this login, it was refused, or the provider's answer is not valid.
        """
        ticket = self._read(cookie)
        if ticket is None or not is_equal(query.get("state", ""), ticket.state):
            raise Refused("this browser has not begun this login, or more than ten minutes ago", _AGAIN)
        self._provider.check_sender(query.get("iss"))
        if "error" in query or not query.get("code"):
            raise Refused("the provider has not let you in", _AGAIN)
        return self._provider.redeem_code(query["code"], self._redirect, ticket.nonce, ticket.verifier), ticket.page

    def _write(self, ticket: _Ticket) -> str:
        fields = [getattr(ticket, name) for name in _Ticket.__slots__]
        text = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
        return f"{text}.{self._sign(f'login {text}')}"

    def _read(self, cookie: str) -> _Ticket | None:
        """Return what a cookie of this server says; None for any other one."""
        text, _, signature = cookie.partition(".")
        if not is_equal(signature, self._sign(f"login {text}")):
            return None
        ticket = _Ticket(*json.loads(base64.urlsafe_b64decode(text)))
        return ticket if ticket.until > self._clock() else None
