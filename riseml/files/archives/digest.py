"""The digest of a project: it names kind, path, content and executable bit of every entry, and nothing else.

Client and server compute it in the same way: the client from its files, the server from the archive that it received.
Modification times and owners are not part of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from riseml.files.archives.entries import ArchiveEntry, EntryKind


def digest_entries(entries: Iterable[tuple[ArchiveEntry, str]]) -> str:
    """Return the SHA-256 (hex) of one record for each entry, sorted by the bytes of the path.

    A record is kind, path, `x` or `-`, and the target of a link or the SHA-256 (hex) of a file, each followed by a NUL
    byte, which none of them can hold.

    Args:
        entries: all files, links and empty folders, each with the SHA-256 (hex) of its content if it is a file.
    """
    from hashlib import sha256

    kinds = {kind: kind.value for kind in EntryKind}  # `value` of an enum's member takes longer
    pairs = list(entries)
    is_plain = all(entry.path.isascii() for entry, _ in pairs)  # ASCII text sorts like its bytes, and compares faster
    ordered = sorted(pairs, key=lambda pair: pair[0].path if is_plain else os.fsencode(pair[0].path))
    text = "".join(
        f"{kinds[entry.kind]}\0{entry.path}\0{'x' if entry.executable and entry.kind is EntryKind.FILE else '-'}\0"
        f"{entry.target or content}\0"
        for entry, content in ordered
    )
    return sha256(os.fsencode(text)).hexdigest()
