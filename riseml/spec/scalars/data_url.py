"""The address of data: `s3://bucket/mnist`, `https://host/file`, `data://folder`.

An address has one spelling: no `..`, no empty name, no `%`. So a server that allows `s3://datasets/` allows what is
below it and nothing else.
"""

from __future__ import annotations

import re
from enum import Enum

from riseml.base.records import dataclass
from riseml.spec.scalars.texts import BadText, quote_text

LONGEST_URL = 1000  # characters
_LONGEST_NAME = 255  # bytes of a name in a folder
_HINT = "write s3://bucket/folder, gs://, az://, https://host/file, or data://folder"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HOST = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_WEB_NAME = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:-]+")


class DataScheme(Enum):
    """Where data comes from."""

    S3 = "s3"
    GOOGLE = "gs"
    AZURE = "az"
    HTTPS = "https"
    HTTP = "http"  # stores.yml must allow it
    DATA = "data"  # the data folder of the hosts


OBJECT_STORES = frozenset({DataScheme.S3, DataScheme.GOOGLE, DataScheme.AZURE})
WEB = frozenset({DataScheme.HTTPS, DataScheme.HTTP})


@dataclass(frozen=True, slots=True)
class DataUrl:
    """An address that was checked."""

    scheme: DataScheme
    place: str  # the bucket, the container, or `host[:port]`; empty for `data`
    names: tuple[str, ...]  # the path, name by name

    def __str__(self) -> str:
        return f"{self.scheme.value}://{'/'.join(part for part in (self.place, *self.names) if part)}"

    @property
    def path(self) -> str:
        """The path without a first `/`."""
        return "/".join(self.names)

    def includes(self, other: DataUrl) -> bool:
        """Return True for this address and everything below it."""
        return (self.scheme, self.place) == (other.scheme, other.place) and self.names == other.names[: len(self.names)]


def parse_data_url(text: str) -> DataUrl:
    """Return the parts of an address. A final `/` means nothing.

    Example: `parse_data_url("s3://datasets/mnist/").names` is `("mnist",)`.

    Raises:
        BadText: it is not an address, or one that has several spellings or a secret in it.
    """
    head, mark, beyond = text.partition("://")
    scheme = next((member for member in DataScheme if member.value == head), None)
    if scheme is None or not mark or len(text) > LONGEST_URL:
        folder = "/" in text or text.startswith(".")
        hint = "copy a folder of yours first: `riseml cp ./mnist data://mnist`" if folder and not mark else _HINT
        raise BadText(f"{quote_text(text)} is not an address of data", hint)
    place, *names = beyond.removesuffix("/").split("/")
    if scheme is DataScheme.DATA:
        place, names = "", [place, *names] if place else names
    else:
        _check_place(scheme, place)
    for name in names:
        _check_name(scheme, name)
    if not names and (scheme is DataScheme.DATA or scheme in WEB):
        raise BadText(f"{quote_text(text)} has no path", _HINT)
    return DataUrl(scheme, place, tuple(names))


def _check_place(scheme: DataScheme, place: str) -> None:
    if "@" in place:
        raise BadText("an address holds no user and no password", "they belong into the server's stores.yml")
    pattern, part = (_HOST, "host") if scheme in WEB else (_BUCKET, "bucket")
    if not pattern.fullmatch(place):
        raise BadText(f"{quote_text(place)} is not the name of a {part}", _HINT)


def _check_name(scheme: DataScheme, name: str) -> None:
    if name in ("", ".", ".."):
        raise BadText(
            f"the address has the name {quote_text(name)} in it", "write each name of the path once, without . and .."
        )
    if scheme in WEB and not _WEB_NAME.fullmatch(name):
        hint = "a signed address holds a secret, which does not belong into riseml.yml" if "?" in name else ""
        raise BadText(
            f"{quote_text(name)} has characters that riseml takes in no web address, such as ?, # and %", hint
        )
    if not name.isprintable() or "\\" in name or len(name.encode()) > _LONGEST_NAME:
        raise BadText(f"{quote_text(name)} is not a name that a file can have", "")
