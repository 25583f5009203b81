"""Fingerprints of certificates, as people compare them."""

from __future__ import annotations


def fingerprint_of(certificate: bytes) -> str:
    """Return the SHA-256 of the public key of a certificate (its SubjectPublicKeyInfo), written as ssh writes it.

    A renewed certificate with the same key has the same fingerprint.

    Args:
        certificate: in DER.

    Raises:
        ValueError: it is not a certificate.
    """
    import base64
    import hashlib

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from cryptography.x509 import load_der_x509_certificate

    key = load_der_x509_certificate(certificate).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
