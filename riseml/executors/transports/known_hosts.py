"""Lines of a known_hosts file: which of them name a host, and the same file with new keys for one host.

The rules are OpenSSH's (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"; `match_pattern_list` and `hostkeys_foreach` of its
source): a comma list of patterns with `*`, `?` and a leading `!` that excludes, in either case of letters; or one
hashed name. `ssh-keygen -F` is the reference that the tests compare with. Pure: the caller reads and writes the file.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable, Iterator

_HASHED = "|1|"  # then salt, `|` and HMAC-SHA1 of the name, both in base 64
_LONGEST_PATTERN = 1022  # characters; OpenSSH matches no list with a longer pattern in it


def find_pinned_keys(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    """Yield kind and key (base 64) of each line that names a host.

    Example:
        >>> list(find_pinned_keys(["*.lab,!gpu2.lab ssh-ed25519 AAAA"], "gpu1.lab"))
        [('ssh-ed25519', 'AAAA')]
    """
    for line in lines:
        words = _split_entry(line)
        if words is not None and names_host(words[0], name):
            yield words[1], words[2]


def replace_pinned_keys(lines: Iterable[str], name: str, keys: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines with these keys (kind, base 64) as the only ones of a host; other hosts keep theirs.

    Lines that name only this host are deleted. Lines that also name others lose the name, or get a `!name` when one of
    their patterns matches the name as well.
    """
    remaining_lines = (_exclude_host(line, name) for line in lines)
    return [*(line for line in remaining_lines if line is not None), *(f"{name} {kind} {key}" for kind, key in keys)]


def names_host(field: str, name: str) -> bool:
    """Return whether the first field of a line names a host.

    Args:
        field: a comma list of patterns, or one hashed name.
        name: what ssh looks for: `gpu1.lab`, `[gpu1.lab]:2222`, or a HostKeyAlias.
    """
    if field.startswith("|"):
        return _is_hash_of(field, name)
    matched = False
    for pattern in field.split(","):
        excludes = pattern.startswith("!")
        text = pattern.removeprefix("!")
        if len(text) > _LONGEST_PATTERN:
            return False
        if _matches(text, name):
            if excludes:
                return False
            matched = True
    return matched


def _matches(pattern: str, name: str) -> bool:
    pieces = {"*": ".*", "?": "."}
    expression = "".join(pieces.get(char) or re.escape(char) for char in re.sub(r"\*+", "*", pattern).lower())
    return re.fullmatch(expression, name.lower(), re.DOTALL) is not None


def _is_hash_of(field: str, name: str) -> bool:
    """Return whether this is the hash that HashKnownHosts writes for a name."""
    salt = field.removeprefix(_HASHED).partition("|")[0]
    try:
        digest = hmac.digest(base64.b64decode(salt, validate=True), name.encode(), "sha1")
    except ValueError:  # not base 64, or not even ASCII
        return False
    return field == f"{_HASHED}{salt}|{base64.b64encode(digest).decode()}"


def _split_entry(line: str) -> list[str] | None:
    """Return names, kind, key and the rest of a line; None for a comment, an incomplete line, or one with a marker
    (`@revoked`, `@cert-authority`), which pins no host key.
    """
    words = re.split(r"[ \t]+", line.strip(" \t\r"), maxsplit=3)
    return words if len(words) >= 3 and not words[0].startswith(("#", "@")) else None


def _exclude_host(line: str, name: str) -> str | None:
    """Return the line without a host; None when it names no other one."""
    words = _split_entry(line)
    if words is None or not names_host(words[0], name):
        return line
    if words[0].startswith("|"):
        return None
    other_patterns = [pattern for pattern in words[0].split(",") if pattern.lower() != name.lower()]
    if all(pattern.startswith("!") for pattern in other_patterns):
        return None
    field = ",".join(other_patterns)
    if names_host(field, name):
        field += f",!{name}"
    return line.replace(words[0], field, 1)
