"""Addresses of files as users type them: `data://mnist/x`, `output://4/model`, `output://baseline/model`,
`4.master:/tmp/x`, or a local path.
"""

from __future__ import annotations

import re

from riseml.base.errors import NotFound, UsageError
from riseml.base.names import parse_id
from riseml.base.records import dataclass
from riseml.client.file_client import StoragePlace
from riseml.files.path_names import to_path
from riseml.job_programs.folder_paths import FilesError, split_path

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_GLOB = re.compile(r"[*?\[]")
_EXAMPLES = "write data://mnist/x, output://4/model or output://4.2/model"


@dataclass(frozen=True, slots=True)
class StorageAddress:
    """A path in a storage of the server."""

    place: StoragePlace
    path: str  # as in `folder_paths`; empty: the root
    wants_folder: bool = False  # it ends with a slash, or is the whole storage
    user: str = ""  # user or project in the address; empty: none
    project: str = ""

    @property
    def has_word(self) -> bool:
        """True when it names its experiment by a name or a tag, which the server knows."""
        return bool(self.place.of) and _NUMBERS.fullmatch(self.place.of) is None

    @property
    def is_pattern(self) -> bool:
        """True when the path has a `*`, a `?` or a `[`."""
        return _GLOB.search(self.path) is not None


def parse_storage_address(text: str) -> StorageAddress | None:
    """Return a path of a storage; None: the text is not such an address.

    Raises:
        UsageError: the text begins as an address, but is not valid.
    """
    match = _SCHEME.fullmatch(text)
    if match is None:
        return None
    scheme, place = match.groups()
    if scheme == "data":
        return StorageAddress(StoragePlace("data"), _parse_path(place, text), place.endswith("/") or not place)
    if scheme == "output":
        return _parse_output(place, text)
    raise UsageError(f"riseml knows no {scheme}://", _EXAMPLES)


def _parse_output(place: str, text: str) -> StorageAddress:
    first, _, path = place.partition("/")
    user = project = ""
    parts = place.split("/", 3)
    if len(parts) > 2 and not _NUMBERS.fullmatch(first) and _NUMBERS.fullmatch(parts[2]):
        user = parts[0]
        project = parts[1]
        first = parts[2]
        path = "".join(parts[3:])
    if not first:
        raise UsageError("output:// alone names no experiment", f"{_EXAMPLES}; `riseml status -a` lists yours")
    is_id = _NUMBERS.fullmatch(first) is not None
    return StorageAddress(
        StoragePlace("output", str(parse_id(first)) if is_id else first),
        _parse_path(path, text),
        path.endswith("/") or not path,
        user,
        project,
    )


def check_project(address: StorageAddress, user: str, project: str) -> None:
    """Check the user and the project of an address against those of its experiment.

    Raises:
        NotFound: they differ.
    """
    if address.user and (address.user, address.project) != (user, project):
        raise NotFound(
            f"experiment {address.place.of} is not of {address.user}/{address.project}",
            f"write output://{address.place.of}, or output://{user}/{project}/{address.place.of}",
        )


def _parse_path(text: str, whole: str) -> str:
    path = to_path(text.rstrip("/"))
    try:
        split_path(path)
    except FilesError:
        raise UsageError(
            f"{whole[:200]!r} is not a path that can be used", "no name in it may be empty, `.`, `..` or over 255 bytes"
        ) from None
    return path
