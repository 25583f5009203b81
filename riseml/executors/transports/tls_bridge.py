"""A TLS connection to an engine as a plain socket, and why one failed."""

from __future__ import annotations

import contextlib
import logging
import re
import select
import socket
import ssl
import threading

from riseml.executors.transports.diagnosis import Diagnosis, walk_causes
from riseml.spec.pool.types import Tls
from riseml.spec.scalars.engine_url import EngineUrl

_CHUNK = 65536  # bytes
_PROBE_TIMEOUT = 2.0  # seconds for each step of a second handshake
_BROKEN_CONNECTION = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, ssl.SSLEOFError)

_FOREIGN_NAME = (
    "the engine's certificate is not for {url.host}: {reason}",
    "make one that names it (subjectAltName), or use the name that it has in the url",
)
_UNKNOWN_AUTHORITY = (
    "the engine's certificate is not signed by {tls.ca} ({reason})",
    "is that the authority of this engine? If it is, another machine answers in its place",
)
_ENGINE_CERTIFICATE = {
    9: ("the engine's certificate is not valid yet", "is the clock of this machine right?"),
    10: ("the engine's certificate has expired", "give the engine a new one; is the clock of this machine right?"),
    62: _FOREIGN_NAME,
    64: _FOREIGN_NAME,
}
"""What is wrong with the engine's certificate, by OpenSSL's X509_V_ERR_* code; any other: an unknown authority."""

_NO_CERTIFICATE = (
    "the engine requires a certificate from riseml, and got none",
    "give `tls.cert` and `tls.key` in pool.yml, or cert.pem and key.pem in DOCKER_CERT_PATH",
)
_BAD_PEM = ("{tls.ca}, {tls.cert} or {tls.key} is not a usable PEM file: {error}", "look at them with `openssl x509`")
_TLS_REFUSALS: tuple[tuple[str, tuple[str, str]], ...] = (
    (
        "WRONG_VERSION_NUMBER|HTTP_REQUEST",
        ("port {url.port} does not speak TLS", "is it the engine's --tlsverify port? That is mostly 2376"),
    ),
    (
        "CERTIFICATE_EXPIRED",
        ("the engine refuses riseml's certificate {tls.cert}: it has expired", "make a new one"),
    ),
    ("CERTIFICATE_REQUIRED", _NO_CERTIFICATE),
    (
        "ALERT",
        (
            "the engine refuses riseml's certificate {tls.cert}",
            "is it signed by the authority that the engine has in --tlscacert?",
        ),
    ),
    ("KEY_VALUES_MISMATCH", ("{tls.key} is not the key of {tls.cert}", "give the pair that belongs together")),
    ("PEM|X509|NO_CERTIFICATE|NO_START_LINE|^$", _BAD_PEM),
    ("", ("TLS with the engine fails: {reason}", "try `openssl s_client -connect` with the same files")),
)
"""What a refusal of the engine means, by OpenSSL's reason; the first pattern that is found counts."""

log = logging.getLogger(__name__)


def bridge_tls(secure: ssl.SSLSocket) -> socket.socket:
    """Return a plain socket that carries what `secure` carries, and ends as it ends. The bridge closes `secure`.

    asyncio takes no socket that has TLS already, and an SSL object must not be read and written by two threads at once.
    So one thread copies between both.
    """
    caller_end, bridge_end = socket.socketpair()
    for end in (secure, bridge_end):
        end.settimeout(0.0)
    threading.Thread(target=_TlsBridge(secure, bridge_end).run, name="tls-bridge", daemon=True).start()
    return caller_end


def explain_tls_failure(error: Exception, url: EngineUrl, tls: Tls) -> Diagnosis | None:
    """Return whose certificate is wrong, and how; None when the failure has nothing to do with TLS.

    In TLS 1.3 an engine refuses riseml's certificate after its own handshake has ended. A client that is writing then
    may see a broken connection only, so this function shakes hands once more and waits for the refusal.
    """
    tls_error = _find_tls_error(error)
    if tls_error is None and any(isinstance(cause, _BROKEN_CONNECTION) for cause in walk_causes(error)):
        tls_error = _shake_hands(url, tls)
    if tls_error is None:
        return None
    if isinstance(tls_error, ssl.SSLCertVerificationError):
        sentences = _ENGINE_CERTIFICATE.get(tls_error.verify_code, _UNKNOWN_AUTHORITY)
        return _make_diagnosis(sentences, url, tls, tls_error, tls_error.verify_message or "it cannot be verified")
    reason = (tls_error.reason or "").upper()
    if "ALERT" in reason and not tls.cert:
        return _make_diagnosis(_NO_CERTIFICATE, url, tls, tls_error, reason)
    sentences = next(sentences for pattern, sentences in _TLS_REFUSALS if re.search(pattern, reason))
    return _make_diagnosis(sentences, url, tls, tls_error, reason)


class _TlsBridge:
    """Copies both ways, with a buffer of one piece for each."""

    def __init__(self, secure: ssl.SSLSocket, plain: socket.socket) -> None:
        self._secure = secure
        self._plain = plain
        self._to_secure = self._to_plain = b""
        self._secure_ended = self._plain_ended = False  # this side sends nothing more
        self._shut_secure = self._shut_plain = False  # the end of the other side was passed on to this side

    def run(self) -> None:
        """Copy until both directions have ended, or one side is gone."""
        try:
            while not (self._shut_secure and self._shut_plain) and self._wait():
                self._copy_once()
        except OSError as error:  # ssl.SSLError is one
            log.debug("a connection over TLS ended: %s", error)
        finally:
            self._secure.close()
            self._plain.close()

    def _wait(self) -> bool:
        """Wait until there is something to copy; False when the plain side is gone."""
        poll = select.poll()
        reads_secure = not self._secure_ended and not self._to_plain
        reads_plain = not self._plain_ended and not self._to_secure
        poll.register(self._secure, reads_secure * select.POLLIN | bool(self._to_secure) * select.POLLOUT)
        poll.register(self._plain, reads_plain * select.POLLIN | bool(self._to_plain) * select.POLLOUT)
        has_more = reads_secure and self._secure.pending() > 0
        events = dict(poll.poll(0 if has_more else None))
        hangup = events.get(self._plain.fileno(), 0) & (select.POLLHUP | select.POLLERR)
        return not hangup or bool(events[self._plain.fileno()] & select.POLLIN)

    def _copy_once(self) -> None:
        if not self._to_plain and not self._secure_ended:
            self._to_plain, self._secure_ended = self._receive_bytes(self._secure)
        if not self._to_secure and not self._plain_ended:
            self._to_secure, self._plain_ended = self._receive_bytes(self._plain)
        self._to_plain = self._send_bytes(self._plain, self._to_plain)
        self._to_secure = self._send_bytes(self._secure, self._to_secure)
        if self._secure_ended and not self._to_plain and not self._shut_plain:
            self._plain.shutdown(socket.SHUT_WR)
            self._shut_plain = True
        if self._plain_ended and not self._to_secure and not self._shut_secure:
            self._say_end()

    def _say_end(self) -> None:
        """Send the end of TLS (close_notify). The other side may go on sending."""
        self._shut_secure = True
        try:
            self._secure.unwrap()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return  # close_notify is sent; the other side answers by ending its own direction

    @staticmethod
    def _receive_bytes(source: socket.socket) -> tuple[bytes, bool]:
        """Return what is there now, and whether nothing follows it."""
        try:
            data = source.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return b"", False
        return data, not data

    @staticmethod
    def _send_bytes(target: socket.socket, data: bytes) -> bytes:
        """Send what the other side takes now; return the rest."""
        if not data:
            return b""
        try:
            return data[target.send(data) :]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return data


def _make_diagnosis(
    sentences: tuple[str, str], url: EngineUrl, tls: Tls, error: ssl.SSLError, reason: str
) -> Diagnosis:
    cause, hint = sentences
    return Diagnosis(cause.format(url=url, tls=tls, error=error, reason=reason), hint)


def _find_tls_error(error: Exception) -> ssl.SSLError | None:
    """Return the error of TLS below one of requests; None for an error that only says that the connection ended."""
    ends = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
    tls_errors = (
        cause for cause in walk_causes(error) if isinstance(cause, ssl.SSLError) and not isinstance(cause, ends)
    )
    return next(tls_errors, None)


def _shake_hands(url: EngineUrl, tls: Tls) -> ssl.SSLError | None:
    """Connect and wait for one byte; return the error that a refusing engine sends, or None."""
    with contextlib.suppress(ssl.SSLEOFError, TimeoutError, ConnectionError, socket.gaierror):
        try:
            context = ssl.create_default_context(cafile=tls.ca)
            if tls.cert:
                context.load_cert_chain(tls.cert, tls.key, password="")
            with (
                socket.create_connection((url.host, url.port or 0), _PROBE_TIMEOUT) as plain,
                context.wrap_socket(plain, server_hostname=url.host) as secured,
            ):
                secured.recv(1)
        except ssl.SSLEOFError:
            raise
        except ssl.SSLError as error:
            return error
    return None
