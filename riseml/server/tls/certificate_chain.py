"""The certificate of the listener, read again when its files change."""

from __future__ import annotations

import logging
import os
import ssl

from riseml.base.errors import UsageError
from riseml.spec.server.types import CertificateFiles

_FileStamp = tuple[int, int, int]  # inode, size in bytes, modification time in nanoseconds

log = logging.getLogger(__name__)


class CertificateChain:
    """What new connections show; connections that are open keep what they have begun with.

    Raises:
        UsageError: the certificate and its key cannot be used.
    """

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._stamps = self._read_stamps()
        self.context = _load(files)

    def refresh(self) -> None:
        """Read the files again when they have changed. Files that do not fit, such as a certificate that was copied
        before its key, change nothing until they fit."""
        stamps = self._read_stamps()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self.context = _load(self._files)
        except UsageError as error:
            log.warning("%s; the former certificate stays in use", error.message)
        else:
            log.info("the certificate %s was read again", self._files.cert)

    def _read_stamps(self) -> list[_FileStamp | None]:
        return [_read_stamp(path) for path in (self._files.cert, self._files.key)]


def _read_stamp(path: str) -> _FileStamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _load(files: CertificateFiles) -> ssl.SSLContext:
    """Return how the server speaks TLS: 1.2 or newer, with these files.

    Raises:
        UsageError: they cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.cert, files.key, password=_refuse_passphrase)
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        raise UsageError(
            f"the certificate {files.cert} and the key {files.key} cannot be used: {reason}",
            "`certificate` in server.yml names a PEM file of each; the key belongs to the first certificate",
        ) from error
    except OSError as error:
        raise UsageError(
            f"the certificate {files.cert} and the key {files.key} cannot be read: {error.strerror}",
            "the server starts with both files alone",
        ) from error
    return context


def _refuse_passphrase() -> str:
    return ""  # OpenSSL would ask at the terminal, where nobody answers
