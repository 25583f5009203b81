"""Failures of TLS with an engine: each names the file to look at."""

from __future__ import annotations

import errno
import ssl
from dataclasses import replace

import pytest
import requests

from riseml.executors.transports.tls_bridge import explain_tls_failure
from riseml.spec.pool.types import Tls
from riseml.spec.scalars.engine_url import parse_engine_url
from tests.unit.executors.transports.request_errors import wrap

TLS = Tls("ca.pem", "cert.pem", "key.pem")
URL = parse_engine_url("tcp://gpu1.lab:2376")


def tls_error(reason: str) -> requests.exceptions.SSLError:
    """Return an error of OpenSSL with this reason, as requests wraps it."""
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return requests.exceptions.SSLError(error)


def certificate_error(code: int, message: str) -> requests.exceptions.SSLError:
    """Return a failed verification of the engine's certificate."""
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    return requests.exceptions.SSLError(error)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (tls_error("WRONG_VERSION_NUMBER"), "port 2376 does not speak TLS"),
        (tls_error("HTTP_REQUEST"), "port 2376 does not speak TLS"),
        (
            tls_error("SSLV3_ALERT_CERTIFICATE_EXPIRED"),
            "the engine refuses riseml's certificate cert.pem: it has expired",
        ),
        (tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "the engine requires a certificate from riseml, and got none"),
        (tls_error("TLSV1_ALERT_UNKNOWN_CA"), "the engine refuses riseml's certificate cert.pem"),
        (tls_error("KEY_VALUES_MISMATCH"), "key.pem is not the key of cert.pem"),
        (tls_error("NO_CERTIFICATE_OR_CRL_FOUND"), "ca.pem, cert.pem or key.pem is not a usable PEM file: "),
        (tls_error(""), "ca.pem, cert.pem or key.pem is not a usable PEM file: "),
        (tls_error("UNSAFE_LEGACY_RENEGOTIATION"), "TLS with the engine fails: UNSAFE_LEGACY_RENEGOTIATION"),
        (certificate_error(10, "x"), "the engine's certificate has expired"),
        (certificate_error(9, "x"), "the engine's certificate is not valid yet"),
        (certificate_error(62, "Hostname mismatch"), "the engine's certificate is not for gpu1.lab: Hostname mismatch"),
        (certificate_error(64, "IP mismatch"), "the engine's certificate is not for gpu1.lab: IP mismatch"),
        (certificate_error(19, "self-signed"), "the engine's certificate is not signed by ca.pem (self-signed)"),
        (certificate_error(19, ""), "the engine's certificate is not signed by ca.pem (it cannot be verified)"),
    ],
)
def test_a_failure_of_tls_names_the_file_to_look_at(error: Exception, cause: str) -> None:
    found = explain_tls_failure(error, URL, TLS)
    assert found is not None
    assert found.cause.startswith(cause)
    assert found.hint


def test_any_alert_to_a_client_without_a_certificate_asks_for_one() -> None:
    found = explain_tls_failure(tls_error("SSLV3_ALERT_HANDSHAKE_FAILURE"), URL, replace(TLS, cert=""))
    assert found is not None
    assert "got none" in found.cause


def test_a_refused_connection_says_nothing_about_tls() -> None:
    assert explain_tls_failure(wrap(ConnectionRefusedError(errno.ECONNREFUSED, "x")), URL, TLS) is None
