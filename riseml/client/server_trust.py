"""Whether a server is the one that its address names: by the system's authorities, or by a certificate that the user
has compared and pinned, as ssh does it with the keys of hosts. No certificate goes unverified.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any, cast
from urllib.parse import urlsplit

from riseml.base.errors import Refused, RisemlError, Unreachable
from riseml.base.records import dataclass

_PATIENCE = 10.0  # seconds for a connection and its handshake
_HTTPS = 443
_DER = 2  # the encoding of a certificate in the module below `ssl`


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """What a server shows to everybody who connects."""

    fingerprint: str  # of the last certificate: the authority, or the server's own when it shows no other
    authority: str  # PEM: the last certificate
    names: tuple[str, ...]  # host names and IP addresses that the server's certificate is valid for


def make_tls_context(authority: str = "") -> ssl.SSLContext:
    """Return how a client speaks TLS: 1.2 or newer, and it verifies the certificate and the host name.

    Args:
        authority: PEM of the one certificate from which the server's has to come, or which it is; empty: the
            authorities of the system.

    Raises:
        Refused: the text is no certificate.
    """
    context = ssl.create_default_context() if not authority else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authority:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a server's own certificate can be pinned, too
        try:
            context.load_verify_locations(cadata=authority)
        except (ssl.SSLError, ValueError):
            raise Refused("the pinned certificate is damaged", "`riseml login` pins it again") from None
    return context


def is_trusted(url: str, context: ssl.SSLContext) -> bool:
    """Return True when the certificate of a server holds against a context, for the host name of the URL.

    Raises:
        Unreachable: no server speaks TLS there.
    """
    try:
        with _connect(url, context):
            return True
    except ssl.SSLCertVerificationError:
        return False


def read_certificate(url: str) -> ShownCertificate:
    """Return what a server shows. Nothing is sent to it: who answers there is not known yet.

    Raises:
        Unreachable: no server speaks TLS there.
    """
    from riseml.base.certificates import fingerprint_of

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with _connect(url, context) as connection:
        chain = _read_chain(connection)
    return ShownCertificate(fingerprint_of(chain[-1]), ssl.DER_cert_to_PEM_cert(chain[-1]), _read_names(chain[0]))


def explain_distrust(url: str, authority: str, error: BaseException) -> RisemlError | None:
    """Return the refusal of a server whose certificate is not the one that it should be; None for any other error.

    Args:
        url: of the server.
        authority: PEM that the user has pinned; empty: none.
        error: of a connection, with what caused it.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    if not authority:
        return Refused(
            f"the certificate of {url} is not trusted: {cause.verify_message}; nothing was sent to it",
            f"`riseml login {url}` shows its fingerprint, and pins it after you have compared it",
        )
    return Refused(
        f"the certificate of {url} is not the one that you trusted: {cause.verify_message}. Somebody may be between"
        f" you and the server; nothing was sent. {_describe_change(url, authority)}",
        f"ask the admin whether the server has a new authority; then `riseml login {url}` compares and pins it",
    )


def _describe_change(url: str, authority: str) -> str:
    from riseml.base.certificates import fingerprint_of

    pinned = fingerprint_of(ssl.PEM_cert_to_DER_cert(authority))
    try:
        certificate = read_certificate(url)
    except Unreachable:
        return f"You trusted {pinned}."
    if certificate.fingerprint == pinned:
        names = ", ".join(certificate.names) or "no name"
        return f"It comes from the authority that you trusted, and is valid for {names}."
    return f"You trusted {pinned}, and it shows {certificate.fingerprint}."


def _connect(url: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Return a connection after the handshake.

    Raises:
        ssl.SSLCertVerificationError: the certificate is not trusted.
        Unreachable: no server speaks TLS there.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        plain = socket.create_connection((host, parts.port or _HTTPS), _PATIENCE)
        try:
            return context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
    except ssl.SSLCertVerificationError:
        raise
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror or str(error) or type(error).__name__
        hint = "check the address, and whether the server runs; it begins with https://"
        raise Unreachable(f"no server speaks TLS at {url} ({why})", hint) from None


def _read_chain(connection: ssl.SSLSocket) -> list[bytes]:
    """Return the certificates that a server shows in DER, its own first."""
    public = getattr(connection, "get_unverified_chain", None)  # Python 3.13 has it
    if public is not None:
        return cast("list[bytes]", public())
    inner: Any = connection
    return [certificate.public_bytes(_DER) for certificate in inner._sslobj.get_unverified_chain() or ()]


def _read_names(certificate: bytes) -> tuple[str, ...]:
    """Return the names that a certificate is valid for, as it writes them."""
    from cryptography import x509

    try:
        parsed = x509.load_der_x509_certificate(certificate)
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return ()
    hosts = names.get_values_for_type(x509.DNSName)
    return (*hosts, *map(str, names.get_values_for_type(x509.IPAddress)))
