"""A provider of OpenID Connect on loopback, with a login for devices (RFC 8628) beside what `oidc_provider_mock` has.

The device login is that of its codes: once a person has confirmed it, the token endpoint redeems a code of theirs.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import flask
import httpx
import oidc_provider_mock
import werkzeug.serving
from flask.typing import ResponseReturnValue

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_REDIRECT = "https://device.example.org/"


@dataclass
class DeviceProvider:
    """A running provider, and the device logins that it knows."""

    issuer: str = ""
    subjects: dict[str, str | None] = field(default_factory=dict)  # who has confirmed each device code; None: nobody
    refused: set[str] = field(default_factory=set)  # device codes
    user_codes: dict[str, str] = field(default_factory=dict)  # device code by user code

    def say(self, subject: str, **claims: object) -> None:
        """Let the provider know a person."""
        httpx.put(f"{self.issuer}/users/{subject}", json=claims).raise_for_status()

    def confirm(self, user_code: str, subject: str) -> None:
        """Do what a person does who types the code in a browser."""
        self.subjects[self.user_codes[user_code]] = subject

    def refuse(self, user_code: str) -> None:
        """Do what a person does who says no."""
        self.refused.add(self.user_codes[user_code])

    def begin(self) -> ResponseReturnValue:
        """Answer at the device authorization endpoint."""
        device_code, user_code = secrets.token_urlsafe(), secrets.token_hex(4).upper()
        self.subjects[device_code] = None
        self.user_codes[user_code] = device_code
        page = f"{self.issuer}/device"
        return flask.jsonify(
            device_code=device_code,
            user_code=user_code,
            verification_uri=page,
            verification_uri_complete=f"{page}?code={user_code}",
            expires_in=600,
            interval=1,
        )

    def answer_device(self) -> ResponseReturnValue | None:
        """Answer a token request of a device; None: it is another request."""
        form = flask.request.form
        if flask.request.path != "/oauth2/token" or form.get("grant_type") != _GRANT:
            return None
        code = form["device_code"]
        subject = self.subjects.get(code)
        if code in self.refused:
            return flask.jsonify(error="access_denied"), 400
        if subject is None:
            return flask.jsonify(error="authorization_pending" if code in self.subjects else "expired_token"), 400
        del self.subjects[code]
        return self._redeem(subject, form["client_id"], form.get("scope", "openid profile email"))

    def _redeem(self, subject: str, client: str, scope: str) -> ResponseReturnValue:
        query = {"response_type": "code", "client_id": client, "redirect_uri": _REDIRECT, "scope": scope}
        asked = httpx.post(f"{self.issuer}/oauth2/authorize", params=query, data={"sub": subject})
        code = parse_qs(urlsplit(asked.headers["location"]).query)["code"][0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": _REDIRECT}
        authorization = {"Authorization": flask.request.headers["Authorization"]}
        answer = httpx.post(f"{self.issuer}/oauth2/token", data=form, headers=authorization)
        return flask.Response(answer.content, answer.status_code, content_type="application/json")


@contextmanager
def open_device_provider() -> Iterator[DeviceProvider]:
    """Run a provider on loopback."""
    provider = DeviceProvider()
    app = oidc_provider_mock.app()
    app.add_url_rule("/oauth2/device", "device", provider.begin, methods=["POST"])
    app.before_request(provider.answer_device)

    def add_device_endpoint(response: flask.Response) -> flask.Response:
        if flask.request.path == "/.well-known/openid-configuration":
            metadata = response.get_json() | {"device_authorization_endpoint": f"{provider.issuer}/oauth2/device"}
            response.set_data(flask.json.dumps(metadata))
        return response

    app.after_request(add_device_endpoint)
    server = werkzeug.serving.make_server("localhost", 0, app, threaded=True)
    provider.issuer = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
