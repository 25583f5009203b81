"""The server's own authority."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from riseml.base.certificates import fingerprint_of
from riseml.base.errors import StoreError
from riseml.server.tls.authority import CERTIFICATE_LIFE, RENEW_BEFORE, Authority
from riseml.server.tls.certificate_chain import CertificateChain

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ("gpu1.example.org", "192.0.2.11", "::1")


def read_chain(authority: Authority) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(Path(authority.files.cert).read_bytes())


def test_a_certificate_has_its_names_and_comes_from_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    assert not authority.exists()
    assert authority.renew(NAMES, NOW)
    own, issuer = read_chain(authority)
    own.verify_directly_issued_by(issuer)
    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["gpu1.example.org"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["192.0.2.11", "::1"]
    assert issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    assert CertificateChain(authority.files).context.get_ca_certs() == []


def test_no_file_of_the_authority_can_be_read_by_others(tmp_path: Path) -> None:
    Authority(tmp_path / "authority").renew(NAMES, NOW)
    paths = [tmp_path / "authority", *(tmp_path / "authority").iterdir()]
    assert len(paths) == 5
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in paths)


def test_a_certificate_is_renewed_before_its_end_and_when_names_change_and_the_fingerprint_stays(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path / "authority")
    authority.renew(NAMES, NOW)
    first, fingerprint = read_chain(authority)[0], authority.find_fingerprint()
    late = NOW + CERTIFICATE_LIFE - RENEW_BEFORE
    assert not authority.renew(NAMES, late - timedelta(seconds=1))
    assert authority.renew(NAMES, late)
    second = read_chain(authority)[0]
    assert second.not_valid_after_utc == late + CERTIFICATE_LIFE
    assert second.serial_number != first.serial_number
    assert authority.renew(NAMES[:1], late)
    assert authority.find_fingerprint() == fingerprint
    assert fingerprint.startswith("SHA256:") and len(fingerprint) == len("SHA256:") + 43


def test_a_damaged_authority_and_a_foreign_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "authority"
    authority = Authority(folder)
    authority.renew(NAMES, NOW)
    (folder / "authority.key").write_text("no key\n")
    with pytest.raises(StoreError, match=r"the authority in .* cannot be read"):
        authority.renew(NAMES[:1], NOW)
    (folder / "cert.pem").write_text("no certificate\n")
    with pytest.raises(StoreError, match="cannot be renewed"):
        authority.renew(NAMES, NOW)
    folder.chmod(0o755)
    with pytest.raises(StoreError, match="is not a folder of yours alone"):
        authority.renew(NAMES, NOW)


def test_what_is_no_certificate_has_no_fingerprint() -> None:
    with pytest.raises(ValueError, match=r"(?i)pars|invalid|asn"):
        fingerprint_of(b"no certificate")
