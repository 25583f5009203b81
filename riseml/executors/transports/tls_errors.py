"""Why a TLS connection to an engine has failed, in words: whose certificate, and what is wrong with it."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator

from riseml.spec.pool.types import Tls
from riseml.spec.scalars.engine_url import EngineUrl

_PROBE = 2.0  # seconds
_NOT_YET, _EXPIRED, _OTHER_HOST, _OTHER_ADDRESS = 9, 10, 62, 64  # OpenSSL's X509_V_ERR_*


def explain(error: Exception, url: EngineUrl, tls: Tls) -> tuple[str, str] | None:
    """What is wrong and what to do next; None when it has nothing to do with TLS.

    An engine that refuses our certificate says so after its own handshake has ended, so that a client that is writing
    then may only see the connection break: the engine is asked once more in a way that listens.
    """
    found = next(_tls_errors(error), None)
    if found is None and _is_broken(error):
        found = _probe(url, tls)
    if found is None:
        return None
    if isinstance(found, ssl.SSLCertVerificationError):
        return _explain_engine(found, url, tls)
    return _explain_refusal(found, url, tls)


def _explain_engine(error: ssl.SSLCertVerificationError, url: EngineUrl, tls: Tls) -> tuple[str, str]:
    """We do not accept the engine's certificate."""
    if error.verify_code == _EXPIRED:
        return "the engine's certificate has expired", "give the engine a new one; is the clock of this machine right?"
    if error.verify_code == _NOT_YET:
        return "the engine's certificate is not valid yet", "is the clock of this machine right?"
    if error.verify_code in (_OTHER_HOST, _OTHER_ADDRESS):
        hint = "make one that names it (subjectAltName), or use the name that it has in the url"
        return f"the engine's certificate is not for {url.host}: {error.verify_message}", hint
    said = error.verify_message or "it cannot be verified"
    return (
        f"the engine's certificate is not signed by {tls.ca} ({said})",
        "is `tls.ca` the authority of this engine? If it is, another machine answers in its place",
    )


def _explain_refusal(error: ssl.SSLError, url: EngineUrl, tls: Tls) -> tuple[str, str]:
    """The engine does not accept us, or no TLS came about at all."""
    reason = (error.reason or "").upper()
    if "WRONG_VERSION_NUMBER" in reason or "HTTP_REQUEST" in reason:
        return f"port {url.port} does not speak TLS", "is it the engine's --tlsverify port? That is mostly 2376"
    if "CERTIFICATE_EXPIRED" in reason:
        return f"the engine refuses our certificate {tls.cert}: it has expired", "make a new one"
    if "CERTIFICATE_REQUIRED" in reason or ("ALERT" in reason and not tls.cert):
        return "the engine wants a certificate from us, and was shown none", "see `tls.cert` and `tls.key` in pool.yml"
    if "ALERT" in reason:
        hint = "is it signed by the authority that the engine has in --tlscacert?"
        return f"the engine refuses our certificate {tls.cert}", hint
    if "KEY_VALUES_MISMATCH" in reason:
        return f"{tls.key} is not the key of {tls.cert}", "give the pair that belongs together"
    if reason == "" or any(word in reason for word in ("PEM", "X509", "NO_CERTIFICATE", "NO_START_LINE")):
        return f"{tls.ca}, {tls.cert} or {tls.key} is no usable PEM file: {error}", "look at them with `openssl x509`"
    return f"TLS with the engine fails: {error.reason}", "try `openssl s_client -connect` with the same files"


def _tls_errors(error: BaseException | None) -> Iterator[ssl.SSLError]:
    """The errors of TLS below one of requests, which wraps them in several layers."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop(0)
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, ssl.SSLError) and not isinstance(one, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            yield one
        waiting += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]


def _is_broken(error: Exception) -> bool:
    """The connection came about and broke; a refused or a silent one says nothing about certificates."""
    text = str(error).lower()
    return any(words in text for words in ("reset by peer", "broken pipe", "aborted", "eof occurred", "bad record"))


def _probe(url: EngineUrl, tls: Tls) -> ssl.SSLError | None:
    """Shake hands and listen: the error that a refusing engine sends; None when it sends none."""
    with contextlib.suppress(ssl.SSLEOFError, TimeoutError, ConnectionError, socket.gaierror):
        try:
            context = ssl.create_default_context(cafile=tls.ca)
            context.load_cert_chain(tls.cert, tls.key, password="")
            with (
                socket.create_connection((url.host, url.port or 0), _PROBE) as plain,
                context.wrap_socket(plain, server_hostname=url.host) as secured,
            ):
                secured.recv(1)
        except ssl.SSLEOFError:
            raise
        except ssl.SSLError as error:
            return error
    return None
