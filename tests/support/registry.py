"""A private Docker registry on a loopback port, where an engine needs no certificate, and a small image for it."""

from __future__ import annotations

import base64
import io
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from riseml.server.clock import now
from tests.support.ports import find_free_port
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE, wait_for

_TOOLS = "bash cat echo env false head mkdir rm sh sleep sync touch true"


def write_dockerfile(*steps: str) -> io.BytesIO:
    """Return the Dockerfile of an image of a few MB, with a shell and some tools, and with these further steps.

    An engine compresses all that it pushes: `BASE` takes it several seconds.
    """
    copy = 'p=$(which $name); cp -L --parents $p $(ldd $p | grep -o "/[^ ]*") /small'
    lines = (
        f"FROM {BASE} AS whole",
        f"RUN mkdir -p /small/tmp /small/etc; ln -s usr/bin /small/bin; for name in {_TOOLS}; do {copy}; done",
        "FROM scratch",
        "COPY --from=whole /small /",
        *steps,
    )
    return io.BytesIO("\n".join(lines).encode())


@contextmanager
def running_registry(folder: Path, auth: Mapping[str, object] | None = None) -> Iterator[str]:
    """Run a registry, and give its address with a path; it stores its images in the folder.

    Args:
        folder: of its files.
        auth: the section `auth` of its configuration; None: everybody may read and write.
    """
    port = find_free_port()
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
        "http": {"addr": f"127.0.0.1:{port}"},
        **({} if auth is None else {"auth": auth}),
    }
    (folder / "config.yml").write_text(json.dumps(config))
    with subprocess.Popen(
        ["/usr/bin/docker-registry", "serve", str(folder / "config.yml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for("the registry answers", lambda: _listens(port), DEADLINE)
            yield f"127.0.0.1:{port}/lab"
        finally:
            process.kill()


@contextmanager
def private_registry(folder: Path, kind: str, login: str, password: str) -> Iterator[str]:
    """Run a registry for one user: with basic auth, or with tokens of an authority that runs beside it (`bearer`)."""
    if kind == "basic":
        order = ["perl", "-e", "print crypt($ARGV[0], $ARGV[1])", password, "$2y$05$abcdefghijklmnopqrstuu"]
        hashed = subprocess.run(order, stdout=subprocess.PIPE, text=True, check=True).stdout
        (folder / "htpasswd").write_text(f"{login}:{hashed}\n")
        with running_registry(folder, {"htpasswd": {"realm": "lab", "path": str(folder / "htpasswd")}}) as address:
            yield address
        return
    with _running_authority(folder, f"{login}:{password}") as realm:
        token = {"realm": realm, "service": "lab", "issuer": "authority", "rootcertbundle": str(folder / "root.pem")}
        with running_registry(folder, {"token": token}) as address:
            yield address


@contextmanager
def _running_authority(folder: Path, credential: str) -> Iterator[str]:
    """Run what gives tokens for a registry to one user (Docker's token specification), and give its address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    moment = now()
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    valid = builder.not_valid_before(moment - timedelta(days=1)).not_valid_after(moment + timedelta(days=1))
    certificate = valid.sign(key, SHA256())
    (folder / "root.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    head = {"typ": "JWT", "alg": "ES256", "x5c": [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()]}
    expected = f"Basic {base64.b64encode(credential.encode()).decode()}"

    class Authority(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if self.headers.get("Authorization") != expected:
                self.send_error(401)
                return
            scopes = [scope.rsplit(":", 2) for scope in query.get("scope", ())]
            access = [{"type": kind, "name": name, "actions": rights.split(",")} for kind, name, rights in scopes]
            claims: dict[str, object] = {"iss": "authority", "sub": "", "aud": "lab", "jti": "1", "access": access}
            claims |= {"iat": int(time.time()), "nbf": int(time.time()) - 60, "exp": int(time.time()) + 600}
            signed = f"{_encode(json.dumps(head).encode())}.{_encode(json.dumps(claims).encode())}"
            first, second = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
            token = f"{signed}.{_encode(first.to_bytes(32) + second.to_bytes(32))}"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"token": token}).encode())

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Authority) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _listens(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0
