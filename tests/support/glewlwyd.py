"""A private Glewlwyd, a provider of OpenID Connect, on loopback: `scripts/oidc/packages` unpacks it."""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE, wait_for

CLIENT = "riseml"
SECRET = "s3cret-of-the-client"  # Glewlwyd decodes no other characters in the header that RFC 6749 encodes
PASSWORD = "a password"
_SWITCHES_ON = ("code", "id-token", "device", "refresh")
_SWITCHES_OFF = ("token", "none", "password", "client")
_UNUSED = ("introspection-revocation", "register-client", "session-management", "oauth-dpop", "resource", "oauth-rar")
_UNPACKED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "riseml", "glewlwyd")


@dataclass
class Glewlwyd:
    """A running provider."""

    url: str
    admin: httpx.Client

    @property
    def issuer(self) -> str:
        """What it calls itself."""
        return f"{self.url}/api/oidc"

    def send(self, method: str, path: str, body: dict[str, object]) -> None:
        """Change something as its admin."""
        self.admin.request(method, path, json=body).raise_for_status()

    def add_client(self, redirect: str) -> None:
        """Make the client that riseml is."""
        client: dict[str, object] = {
            "client_id": CLIENT,
            "name": CLIENT,
            "confidential": True,
            "client_secret": SECRET,
            "redirect_uri": [redirect],
            "authorization_type": ["code", "device_authorization", "refresh_token", "id_token"],
            "token_endpoint_auth_method": ["client_secret_basic"],
            "scope": ["openid", "groups"],
            "enabled": True,
        }
        self.send("POST", "/client/", client)

    def add_user(self, name: str, group: str) -> None:
        """Make a user; their name at the provider stands for their group."""
        scopes = ["openid", "groups", "g_profile"]
        user = {"username": name, "name": group, "email": f"{name}@example.org", "password": PASSWORD}
        self.send("POST", "/user/", {**user, "scope": scopes, "enabled": True})

    @contextmanager
    def open_browser(self, name: str) -> Iterator[httpx.Client]:
        """Yield a browser whose user has logged in here, and lets riseml know who they are."""
        with httpx.Client(base_url=f"{self.url}/api", timeout=DEADLINE) as browser:
            browser.post("/auth/", json={"username": name, "password": PASSWORD}).raise_for_status()
            browser.put(f"/auth/grant/{CLIENT}", json={"scope": "openid groups"}).raise_for_status()
            yield browser


@contextmanager
def open_glewlwyd(folder: Path) -> Iterator[Glewlwyd]:
    """Run it, with its files in a folder."""
    documents = _UNPACKED / "usr/share/doc/glewlwyd"
    assert documents.exists(), "Glewlwyd is not there: scripts/oidc/packages unpacks it"
    port = find_free_port()
    with closing(sqlite3.connect(folder / "glewlwyd.db")) as database:
        database.executescript(gzip.decompress((documents / "database/init.sqlite3.sql.gz").read_bytes()).decode())
    sample = gzip.decompress((documents / "glewlwyd.conf.sample.gz").read_bytes()).decode()
    for before, after in (
        ("/usr/lib/glewlwyd", f"{_UNPACKED}/usr/lib/glewlwyd"),
        ("/usr/share/glewlwyd", f"{_UNPACKED}/usr/share/glewlwyd"),
        ("/var/cache/glewlwyd/glewlwyd.db", f"{folder}/glewlwyd.db"),
        ("\ncookie_secure=1", "\ncookie_secure=0"),
        ("port=4593", f'port={port}\nbind_address="127.0.0.1"'),
        ("localhost:4593", f"127.0.0.1:{port}"),
        ('cookie_domain="localhost"', 'cookie_domain="127.0.0.1"'),  # httpx keeps no cookie of the domain localhost
    ):
        sample = sample.replace(before, after)
    (folder / "glewlwyd.conf").write_text(sample)
    with (folder / "glewlwyd.log").open("w") as log:
        process = subprocess.Popen(
            [_UNPACKED / "usr/bin/glewlwyd", f"--config-file={folder}/glewlwyd.conf"],
            env={"LD_LIBRARY_PATH": f"{_UNPACKED}/usr/lib/x86_64-linux-gnu"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=f"{url}/api", timeout=DEADLINE) as admin:
            wait_for("Glewlwyd answers", lambda: _log_in(admin), DEADLINE, (folder / "glewlwyd.log").read_text)
            provider = Glewlwyd(url, admin)
            _configure(provider)
            yield provider
    finally:
        process.terminate()
        process.wait(DEADLINE)


def _log_in(admin: httpx.Client) -> bool:
    try:
        return admin.post("/auth/", json={"username": "admin", "password": "password"}).is_success
    except httpx.TransportError:
        return False


def _configure(provider: Glewlwyd) -> None:
    """Make the scope of groups, and the plugin of OpenID Connect."""
    scope = {"name": "groups", "display_name": "groups", "description": "groups", "password_required": True}
    provider.send("POST", "/scope/", {**scope, "password_max_age": 0, "scheme": {}, "scheme_required": {}})
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    public_form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = key.public_key().public_bytes(serialization.Encoding.PEM, public_form)
    claims = (("preferred_username", "username"), ("groups", "name"))
    address = ("formatted", "street_address", "locality", "region", "postal_code", "country")
    parameters: dict[str, object] = {
        "iss": provider.issuer,
        "jwt-type": "rsa",
        "jwt-key-size": "256",
        "key": private.decode(),
        "cert": public.decode(),
        "access-token-duration": 3600,
        "refresh-token-duration": 3600,
        "code-duration": 600,
        "refresh-token-rolling": True,
        "allow-non-oidc": False,
        "scope": [],
        "allowed-scope": ["openid", "groups"],
        "additional-parameters": [],
        "claims": [{"name": name, "type": "string", "user-property": of, "mandatory": True} for name, of in claims],
        "jwks-show": True,
        "jwks-x5c": [],
        "request-parameter-allow": False,
        "subject-type": "public",
        "address-claim": {"type": "no", "mandatory": False} | dict.fromkeys(address, ""),
        "name-claim": "no",
        "email-claim": "no",
        "scope-claim": "no",
        "pkce-allowed": True,
        "pkce-method-plain-allowed": False,
        "device-authorization-expiration": 600,
        "device-authorization-interval": 1,
    }
    parameters |= {f"auth-type-{name}-enabled": True for name in _SWITCHES_ON}
    parameters |= {f"auth-type-{name}-enabled": False for name in _SWITCHES_OFF}
    parameters |= {f"{name}-allowed": False for name in _UNUSED}
    plugin = {"module": "oidc", "name": "oidc", "display_name": "OpenID Connect", "enabled": True}
    provider.send("POST", "/mod/plugin/", {**plugin, "order_rank": 0, "readonly": False, "parameters": parameters})
