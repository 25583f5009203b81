"""The server's own authority: it signs the certificate of the listener, and renews it before it expires.

Clients pin the public key of the authority (`riseml login`), so that a renewed certificate changes nothing for them.
All files are in one folder of the home, and only their owner can read them.
"""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from riseml.base.certificates import fingerprint_of
from riseml.base.errors import StoreError
from riseml.base.folders import make_private
from riseml.spec.server.types import CertificateFiles

AUTHORITY_LIFE = timedelta(days=20 * 365)
CERTIFICATE_LIFE = timedelta(days=90)
RENEW_BEFORE = timedelta(days=30)
"""How long before its end a certificate is renewed."""

_CLOCK_ERROR = timedelta(hours=1)  # certificates count from this time before now, for clients whose clock is behind
_LONGEST_NAME = 64  # characters of a common name


class Authority:
    """The authority of one home.

    Example:
        authority = Authority(settings.home / "authority")
        authority.renew(("gpu1.example.org", "192.0.2.11"), now())
        load(authority.files)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / "authority.pem"
        self._own_key = folder / "authority.key"

    @property
    def files(self) -> CertificateFiles:
        """The certificate of the listener with that of the authority behind it, and its key."""
        return CertificateFiles(str(self._folder / "cert.pem"), str(self._folder / "key.pem"))

    def exists(self) -> bool:
        """Return True when the authority has been made."""
        return self._own.exists()

    def find_fingerprint(self) -> str:
        """Return the fingerprint of the authority's public key, which clients pin.

        Raises:
            StoreError: the certificate of the authority cannot be read.
        """
        return fingerprint_of(self._load()[0].public_bytes(serialization.Encoding.DER))

    def renew(self, names: Sequence[str], now: datetime) -> bool:
        """Sign a certificate for these names when there is none, or it ends soon, or it has other names; return True
        when one was signed. Make the authority first when there is none.

        Raises:
            StoreError: a file cannot be read or written.
        """
        try:
            make_private(self._folder)
            if not self.exists():
                self._make_authority(names[0], now)
            if self._holds(names, now):
                return False
            self._sign(names, now)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"the certificate in {self._folder} cannot be renewed: {error}",
                "make the folder writable; removing it makes a new authority, which every client has to pin again",
            ) from error
        return True

    def _holds(self, names: Sequence[str], now: datetime) -> bool:
        """Return True when the present certificate is right for some more time."""
        try:
            present = x509.load_pem_x509_certificate(Path(self.files.cert).read_bytes())
        except FileNotFoundError:
            return False
        written = present.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(written) == set(map(_make_name, names)) and now < present.not_valid_after_utc - RENEW_BEFORE

    def _make_authority(self, name: str, now: datetime) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"riseml of {name}"[:_LONGEST_NAME])])
        own = _begin(subject, subject, key.public_key(), now, AUTHORITY_LIFE)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        own = own.add_extension(_make_usage(signs=True), critical=True)
        own = own.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        _write(self._own_key, _write_key(key))
        _write(self._own, own.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _load(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        try:
            own = x509.load_pem_x509_certificate(self._own.read_bytes())
            key = serialization.load_pem_private_key(self._own_key.read_bytes(), None)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"the authority in {self._own.parent} cannot be read: {error}", "restore both of its files"
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise StoreError(f"{self._own_key} is not the key of this authority", "restore both files of the authority")
        return own, key

    def _sign(self, names: Sequence[str], now: datetime) -> None:
        own, own_key = self._load()
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:_LONGEST_NAME])])
        built = _begin(subject, own.subject, key.public_key(), now, CERTIFICATE_LIFE)
        built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        built = built.add_extension(_make_usage(signs=False), critical=True)
        built = built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(own_key.public_key())
        built = built.add_extension(issuer, critical=False)
        alternatives = x509.SubjectAlternativeName([_make_name(name) for name in names])
        built = built.add_extension(alternatives, critical=False)
        signed = built.sign(own_key, hashes.SHA256())
        chain = [certificate.public_bytes(serialization.Encoding.PEM) for certificate in (signed, own)]
        _write(Path(self.files.key), _write_key(key))
        _write(Path(self.files.cert), b"".join(chain))


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_ERROR)
        .not_valid_after(now + life)
    )


def _make_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _make_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _write(path: Path, content: bytes) -> None:
    """Replace a file as a whole; only its owner can read it, from its first moment on."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
