"""What is asked of one provider of OpenID Connect: its metadata, tokens for a code, for a device and for a refresh.

The provider is asked over TLS (or at loopback), follows no redirects, and its answers have bounds of time and size.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from riseml.base.errors import Refused, Unreachable
from riseml.base.records import dataclass
from riseml.server.oidc.identity import Identity, read_identity
from riseml.server.oidc.tokens import TokenRules, UnknownSigningKey, check_id_token

if TYPE_CHECKING:
    import httpx

    from riseml.spec.server.types import OidcSection

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_METADATA_LIFE = 3600.0  # seconds until metadata and keys are read again
_KEYS_PAUSE = 60.0  # seconds between two readings of the keys for an unknown key
_PATIENCE = 10.0  # seconds for one answer
_LONGEST_ANSWER = 1 << 20  # bytes
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The addresses of a provider, as it publishes them."""

    authorization: str
    token: str
    jwks: str
    userinfo: str | None
    device: str | None  # None: it has no flow for devices
    names_issuer: bool  # its redirects say who sends them (RFC 9207)
    auth_methods: tuple[str, ...]  # how a client may prove itself
    keys: Mapping[str, Any]
    read_at: float  # seconds since 1970


@dataclass(frozen=True, slots=True)
class DeviceStart:
    """The beginning of a login of a command."""

    device_code: str  # the server alone knows it
    user_code: str  # the user types it at the provider
    uri: str  # where
    whole_uri: str | None  # with the code
    expires_in: float  # seconds
    interval: float  # seconds between two questions


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """Someone who has logged in."""

    identity: Identity
    refresh: str | None  # token with which the server asks again later; None: the provider gives none


class NotConfirmed(Refused):
    """The user has not answered at the provider. `slower`: the provider wants to be asked less often."""

    def __init__(self, *, slower: bool) -> None:
        super().__init__("nobody has confirmed this login yet", "open the address, and type the code")
        self.slower = slower


class LoginEnded(Refused):
    """The provider lets this person in no more, or the login was refused there or came too late."""


class Provider:
    """One provider. Threads use it.

    Args:
        config: names it, and says what its claims mean.
        clock: seconds since 1970.
        certificates: file with the authorities that its certificate may have; None: those of the system.
    """

    def __init__(self, config: OidcSection, clock: Callable[[], float], certificates: str | None = None) -> None:
        self._config = config
        self._clock = clock
        self._certificates = certificates
        self._lock = threading.Lock()
        self._metadata: Metadata | None = None

    @property
    def name(self) -> str:
        """What users call it: the host of its issuer."""
        return urlsplit(self._config.issuer).hostname or self._config.issuer

    def read_metadata(self) -> Metadata:
        """Return the metadata of the provider.

        Raises:
            Unreachable: it does not answer.
            Refused: it is not the provider that server.yml names, or lacks something.
        """
        with self._lock:
            if self._metadata is None or self._clock() - self._metadata.read_at > _METADATA_LIFE:
                self._metadata = self._fetch_metadata()
            return self._metadata

    def make_authorization_url(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Return where a browser logs in.

        Args:
            redirect: where the provider sends the browser afterwards.
            state: comes back with it.
            nonce: comes back in the ID token.
            verifier: of PKCE; the server alone knows it.

        Raises:
            Unreachable, Refused: as `read_metadata`.
        """
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._config.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(self._config.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = self.read_metadata().authorization
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    def check_sender(self, issuer: str | None) -> None:
        """Refuse a redirect of another provider (RFC 9207).

        Args:
            issuer: the parameter `iss` of the redirect; None: it has none.

        Raises:
            Unreachable, Refused: as `read_metadata`; or it is of another one.
        """
        expected = self._config.issuer
        if (issuer is None and self.read_metadata().names_issuer) or issuer not in (None, expected):
            raise Refused("this login comes from another provider", "begin again at the page of this server")

    def redeem_code(self, code: str, redirect: str, nonce: str, verifier: str) -> LoggedIn:
        """Exchange the code of a redirect for the identity of who has logged in.

        Raises:
            Unreachable: the provider does not answer.
            Refused: it does not take the code, or its answer is not valid.
        """
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": verifier,
        }
        return self._read_login(self._ask_token(fields), nonce)

    def begin_device(self) -> DeviceStart:
        """Begin the login of a command (RFC 8628).

        Raises:
            Unreachable: the provider does not answer.
            Refused: it has no such flow, or refuses it.
        """
        address = self.read_metadata().device
        if address is None:
            raise Refused(f"{self.name} has no login for the command line", "log in with a key: `riseml login URL`")
        answer = self._post(address, {"scope": " ".join(self._config.scopes)})
        whole = answer.get("verification_uri_complete")
        try:
            return DeviceStart(
                device_code=str(answer["device_code"]),
                user_code=str(answer["user_code"]),
                uri=_check_shown(str(answer["verification_uri"])),
                whole_uri=_check_shown(whole) if isinstance(whole, str) else None,
                expires_in=min(float(answer.get("expires_in", 600)), 3600.0),
                interval=max(float(answer.get("interval", 5)), 1.0),
            )
        except (KeyError, ValueError, TypeError) as error:
            raise _refuse_answer(self.name, f"its answer lacks {error}") from error

    def redeem_device(self, device_code: str) -> LoggedIn:
        """Ask whether a user has confirmed the login of a command.

        Raises:
            NotConfirmed: not yet.
            LoginEnded: the user has refused it, or it is too old.
            Unreachable, Refused: as `redeem_code`.
        """
        return self._read_login(self._ask_token({"grant_type": DEVICE_GRANT, "device_code": device_code}), None)

    def refresh(self, token: str, subject: str) -> LoggedIn:
        """Ask again who a user is now.

        Args:
            token: refresh token of their login.
            subject: of the user.

        Raises:
            LoginEnded: the provider lets them in no more.
            Unreachable, Refused: as `redeem_code`.
        """
        answer = self._ask_token({"grant_type": "refresh_token", "refresh_token": token})
        if not isinstance(answer.get("id_token"), str):
            claims = self._read_userinfo(answer)
        else:
            claims = self._merge_userinfo(self._check_token(str(answer["id_token"]), None), answer)
        if claims.get("sub") != subject:
            raise LoginEnded("the provider has answered for another person", "log in again")
        identity = read_identity(claims, self._config.user_claim, self._config.groups_claim)
        return LoggedIn(identity, str(answer["refresh_token"]) if answer.get("refresh_token") else token)

    def _read_login(self, answer: Mapping[str, Any], nonce: str | None) -> LoggedIn:
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise _refuse_answer(self.name, "it sends no ID token: oidc.scopes of server.yml needs openid")
        claims = self._merge_userinfo(self._check_token(token, nonce), answer)
        refresh = answer.get("refresh_token")
        identity = read_identity(claims, self._config.user_claim, self._config.groups_claim)
        return LoggedIn(identity, refresh if isinstance(refresh, str) else None)

    def _check_token(self, token: str, nonce: str | None) -> dict[str, object]:
        rules = TokenRules(self._config.issuer, self._config.client_id, nonce)
        metadata = self.read_metadata()
        try:
            return check_id_token(token, metadata.keys, rules, self._clock())
        except UnknownSigningKey:
            if self._clock() - metadata.read_at < _KEYS_PAUSE:
                raise
            fresh = replace(metadata, keys=self._get(metadata.jwks), read_at=self._clock())
            with self._lock:
                self._metadata = fresh
            return check_id_token(token, fresh.keys, rules, self._clock())

    def _merge_userinfo(self, claims: dict[str, object], answer: Mapping[str, Any]) -> dict[str, object]:
        """Return the claims of an ID token, with those of /userinfo where it lacks one that riseml reads."""
        claim_names = (self._config.user_claim, self._config.groups_claim)
        if all(name in claims for name in claim_names) or self.read_metadata().userinfo is None:
            return claims
        further = self._read_userinfo(answer)
        if further.get("sub") != claims.get("sub"):
            raise _refuse_answer(self.name, "its user information is of another person")
        return {**further, **claims}

    def _read_userinfo(self, answer: Mapping[str, Any]) -> dict[str, object]:
        address = self.read_metadata().userinfo
        token = answer.get("access_token")
        if address is None or not isinstance(token, str):
            raise _refuse_answer(self.name, "it does not say who it is")
        return dict(self._get(address, {"Authorization": f"Bearer {token}"}))

    def _fetch_metadata(self) -> Metadata:
        issuer = self._config.issuer
        document = self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != issuer:
            raise Refused(
                f"the provider calls itself {str(document.get('issuer'))[:200]!r}, and not {issuer}",
                "write oidc.issuer of server.yml exactly as the provider does",
            )
        addresses = {}
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            addresses[name] = _check_asked(document.get(name))
        optional = {
            name: _check_asked(document[name]) if isinstance(document.get(name), str) else None
            for name in ("userinfo_endpoint", "device_authorization_endpoint")
        }
        methods = document.get("token_endpoint_auth_methods_supported")
        return Metadata(
            authorization=addresses["authorization_endpoint"],
            token=addresses["token_endpoint"],
            jwks=addresses["jwks_uri"],
            userinfo=optional["userinfo_endpoint"],
            device=optional["device_authorization_endpoint"],
            names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            auth_methods=tuple(methods) if isinstance(methods, list) else ("client_secret_basic",),
            keys=self._get(addresses["jwks_uri"]),
            read_at=self._clock(),
        )

    def _ask_token(self, fields: Mapping[str, str]) -> Mapping[str, Any]:
        return self._post(self.read_metadata().token, fields)

    def _post(self, address: str, fields: Mapping[str, str]) -> Mapping[str, Any]:
        """Send a form as this client, which proves itself as the provider wants."""
        secret = self._read_secret()
        form = {**fields, "client_id": self._config.client_id}
        headers = {}
        if secret is not None and "client_secret_basic" in self.read_metadata().auth_methods:
            pair = f"{quote(self._config.client_id, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif secret is not None:
            form["client_secret"] = secret
        return self._exchange("POST", address, headers, form)

    def _get(self, address: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        return self._exchange("GET", address, headers or {}, None)

    def _exchange(
        self, method: str, address: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> Mapping[str, Any]:
        """Return the JSON object of an answer.

        Raises:
            Unreachable: no answer came.
            Refused: the provider refuses, or its answer is none.
        """
        import httpx

        verify: Any = True if self._certificates is None else _make_context(self._certificates)
        try:
            with (
                httpx.Client(verify=verify, timeout=_PATIENCE, follow_redirects=False) as client,
                client.stream(method, _check_asked(address), headers=dict(headers), data=form) as response,
            ):
                body = _read_answer(response)
        except httpx.HTTPError as error:
            raise Unreachable(
                f"the provider {self.name} does not answer: {type(error).__name__}", "try again in a minute"
            ) from error
        answer = _parse_object(body)
        if response.status_code == 200 and answer is not None:
            return answer
        raise _explain_refusal(self.name, response.status_code, answer or {})

    def _read_secret(self) -> str | None:
        """Return the secret of this client.

        Raises:
            Refused: its file cannot be read.
        """
        if self._config.client_secret_file is None:
            return None
        try:
            return Path(self._config.client_secret_file).read_text().strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise Refused(
                f"oidc.client_secret_file {self._config.client_secret_file} cannot be read: {reason}",
                "an admin writes the secret of the client into it, for the user of the server alone",
            ) from error


def _make_context(certificates: str) -> Any:
    import ssl

    return ssl.create_default_context(cafile=certificates)


def _read_answer(response: httpx.Response) -> bytes:
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > _LONGEST_ANSWER:
            raise Refused("the provider's answer is too long", "ask the admin of the provider")
    return bytes(body)


def _parse_object(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _check_asked(address: object) -> str:
    """Return an address that the server may ask: over TLS, or on this machine.

    Raises:
        Refused: it is not one.
    """
    parts = urlsplit(address) if isinstance(address, str) else None
    is_safe = parts is not None and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )
    if not isinstance(address, str) or not is_safe:
        raise Refused(
            f"the provider has the address {str(address)[:200]!r}, which is not https://",
            "passwords and tokens would be readable on the way",
        )
    return address


def _check_shown(address: str) -> str:
    """Return an address that users open.

    Raises:
        ValueError: it is none.
    """
    if urlsplit(address).scheme not in ("https", "http") or not address.isascii() or not address.isprintable():
        raise ValueError("an address to open")
    return address


def _explain_refusal(name: str, status: int, answer: Mapping[str, Any]) -> Refused:
    match answer.get("error"):
        case "authorization_pending":
            return NotConfirmed(slower=False)
        case "slow_down":
            return NotConfirmed(slower=True)
        case "access_denied":
            return LoginEnded("this login was refused at the provider", "log in again")
        case "expired_token" | "invalid_grant":
            return LoginEnded("this login is too old, or the provider has ended it", "log in again")
        case "invalid_client" | "unauthorized_client":
            return _refuse_answer(name, "it does not know this server: see oidc.client_id and its secret in server.yml")
    return _refuse_answer(name, f"it answers {status}")


def _refuse_answer(name: str, reason: str) -> Refused:
    return Refused(f"the provider {name} does not log in: {reason}", "ask the admin of this server")
