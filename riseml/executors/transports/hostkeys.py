"""Host keys of ssh: the keys that a host shows now, the pinned ones, and the lines of known_hosts that have them.

The user who pins a key names its fingerprint. Only a key that the host still shows and that has this fingerprint is
written, so that no key is pinned unseen.
"""

from __future__ import annotations

import base64
import contextlib
import enum
import hashlib
import hmac
import os
import re
import secrets
import shlex
import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from riseml.base.errors import Conflict, Unreachable, UsageError
from riseml.base.records import dataclass
from riseml.executors.transports.ssh_command import Destination

_SCAN_TIMEOUT = 10  # seconds that ssh-keyscan waits for an answer
_COMMAND_TIMEOUT = 2 * _SCAN_TIMEOUT  # seconds until ssh or ssh-keyscan is killed
_SSH_PORT = "22"
_SHORT_TITLES = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA", "ssh-dss": "DSA"}
_HASH_MARK = "|1|"  # then salt, `|` and HMAC-SHA1 of the name, both in base 64
_LONGEST_PATTERN = 1022  # characters; OpenSSH matches no list with a longer pattern in it


class BehindOtherHost(UsageError):
    """The host is reached through another one, so that this machine cannot scan its keys."""


class Pinned(enum.Enum):
    """Whether known_hosts has a key of a host."""

    NO = "no"  # it has no key of this kind for the host
    YES = "yes"
    OTHER = "other"  # it has another key of this kind


@dataclass(frozen=True, slots=True)
class HostKey:
    """One key that a host shows."""

    kind: str  # as in known_hosts: `ssh-ed25519`
    blob: str  # the key itself, in base 64
    pinned: Pinned

    @property
    def fingerprint(self) -> str:
        """The fingerprint as `ssh-keygen -l` shows it."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def title(self) -> str:
        """The kind as ssh-keygen shows it: `ED25519`."""
        return _SHORT_TITLES.get(self.kind, self.kind.partition("-sha2-")[0].upper())


def scan_keys(destination: Destination) -> tuple[HostKey, ...]:
    """Return the keys that a host shows now.

    Raises:
        Unreachable: the host shows no key.
        BehindOtherHost: this machine cannot scan it.
        UsageError: a file of ssh cannot be read.
    """
    return _scan_address(_resolve_address(destination), destination)


def find_hostname(destination: Destination) -> str:
    """Return the name or address that ssh connects to, after resolving the aliases of the user's ssh configuration.

    Raises:
        UsageError: a file of ssh cannot be read.
    """
    address, _ = _read_address(destination)
    return address.hostname


def has_pinned_key(destination: Destination) -> bool:
    """Return True when known_hosts has a key of the host, whatever the host shows now.

    Raises:
        UsageError: a file of ssh cannot be read.
    """
    address, _ = _read_address(destination)
    return any(find_pinned_keys(_read_known_hosts(destination.known_hosts), address.entry))


def pin_keys(destination: Destination, fingerprints: Collection[str]) -> tuple[HostKey, ...]:
    """Write the keys of a host that have these fingerprints into its known_hosts, instead of the host's earlier keys.

    Raises:
        Unreachable: the host shows no key.
        UsageError: known_hosts cannot be read or written.
        Conflict: the host shows no key with one of these fingerprints.
    """
    address = _resolve_address(destination)
    keys = _scan_address(address, destination)
    chosen = [(key.kind, key.blob) for key in keys if key.fingerprint in fingerprints]
    if not chosen:
        host_fingerprints = ", ".join(key.fingerprint for key in keys)
        raise Conflict(
            f"host {destination.name} has no key with the fingerprint {', '.join(sorted(fingerprints))}",
            f"it shows {host_fingerprints}: if its owner says otherwise, another machine answers in its place",
        )
    path = destination.known_hosts
    _write_known_hosts(path, replace_pinned_keys(_read_known_hosts(path), address.entry, chosen))
    return _scan_address(address, destination)


def find_pinned_keys(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    """Yield kind and key (base 64) of each line of known_hosts that names a host. Pure: the caller reads the file.

    Example:
        >>> list(find_pinned_keys(["*.lab,!gpu2.lab ssh-ed25519 AAAA"], "gpu1.lab"))
        [('ssh-ed25519', 'AAAA')]
    """
    for line in lines:
        words = _split_entry(line)
        if words is not None and names_host(words[0], name):
            yield words[1], words[2]


def replace_pinned_keys(lines: Iterable[str], name: str, keys: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines of known_hosts with these keys (kind, base 64) as the only ones of a host; other hosts keep
    theirs. Pure: the caller reads and writes the file.

    Lines that name only this host are deleted. Lines that also name others lose the name, or get a `!name` when one of
    their patterns matches the name as well.
    """
    remaining_lines = (_exclude_host(line, name) for line in lines)
    return [*(line for line in remaining_lines if line is not None), *(f"{name} {kind} {key}" for kind, key in keys)]


def names_host(field: str, name: str) -> bool:
    """Return whether the first field of a line of known_hosts names a host.

    The rules are OpenSSH's (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"; `match_pattern_list` and `hostkeys_foreach` of its
    source): a comma list of patterns with `*`, `?` and a leading `!` that excludes, in either case of letters; or one
    hashed name. `ssh-keygen -F` is the reference that the tests compare with.

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
        if _matches_pattern(text, name):
            if excludes:
                return False
            matched = True
    return matched


@dataclass(frozen=True, slots=True)
class _SshAddress:
    """Where ssh connects to, after the aliases of the user's ssh configuration."""

    hostname: str
    port: str
    alias: str  # HostKeyAlias; empty: none

    @property
    def entry(self) -> str:
        """The name that ssh looks for in known_hosts."""
        return self.alias or (self.hostname if self.port == _SSH_PORT else f"[{self.hostname}]:{self.port}")


def _scan_address(address: _SshAddress, destination: Destination) -> tuple[HostKey, ...]:
    command = ["ssh-keyscan", "-T", str(_SCAN_TIMEOUT), "-p", address.port, address.hostname]
    lines = _run_ssh_tool(command, destination).stdout.splitlines()
    entries = [words for line in lines if len(words := line.split()) >= 3 and words[0] != "#" and _is_key(words[2])]
    if not entries:
        raise Unreachable(
            f"host {destination.name} ({destination.url}) shows no host key",
            f"is it up, and does sshd listen there? `{shlex.join(command)}` says more",
        )
    pinned_lines = _read_known_hosts(destination.known_hosts)
    keys = (HostKey(kind, blob, _compare_pinned(pinned_lines, address, kind, blob)) for _, kind, blob, *_ in entries)
    return tuple(sorted(keys, key=lambda key: key.kind))


def _compare_pinned(pinned_lines: list[str], address: _SshAddress, kind: str, blob: str) -> Pinned:
    """Compare a key with known_hosts as ssh does: when no line names host and port, a line that has the same key for
    the host without its port counts.
    """
    pinned = {key for pinned_kind, key in find_pinned_keys(pinned_lines, address.entry) if pinned_kind == kind}
    if pinned:
        return Pinned.YES if blob in pinned else Pinned.OTHER
    without_port = address.alias or address.hostname
    return Pinned.YES if (kind, blob) in find_pinned_keys(pinned_lines, without_port) else Pinned.NO


def _resolve_address(destination: Destination) -> _SshAddress:
    """Return where ssh connects to, if it connects directly.

    Raises:
        BehindOtherHost: it does not.
    """
    address, jump = _read_address(destination)
    if jump:
        raise BehindOtherHost(
            f"host {destination.name} is reached through another host ({jump}), so that this machine cannot "
            "scan its key",
            f"run `ssh-keyscan {destination.url.host}` on that host, and put the output into {destination.known_hosts}",
        )
    return address


def _read_address(destination: Destination) -> tuple[_SshAddress, str]:
    """Ask ssh for the user's configuration of the host; the text is the jump host, empty for a direct connection."""
    url = destination.url
    port = [] if url.port is None else ["-p", str(url.port)]
    answer = _run_ssh_tool(["ssh", "-G", *port, "--", url.host], destination)
    options = dict(line.split(" ", 1) for line in answer.stdout.splitlines() if " " in line)
    if not {"hostname", "port"} <= options.keys():
        reason = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
        raise UsageError(
            f"ssh cannot read its configuration of host {destination.name} ({url}): {reason}",
            f"try `ssh -G {url.host}`",
        )
    jumps = [options[option] for option in ("proxyjump", "proxycommand") if options.get(option, "none") != "none"]
    return _SshAddress(options["hostname"], options["port"], options.get("hostkeyalias", "")), next(iter(jumps), "")


def _run_ssh_tool(command: list[str], destination: Destination) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_TIMEOUT,
            check=False,
        )
    except OSError as error:
        raise Unreachable(f"{command[0]} cannot be started: {error}", "install the OpenSSH client") from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(
            f"host {destination.name} ({destination.url}) does not answer", "is it up, and does sshd listen there?"
        ) from error


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) > 0
    except ValueError:
        return False


def _read_known_hosts(path: Path) -> list[str]:
    """Return the lines of known_hosts; comments in any encoding survive a rewrite."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "make it yours and readable") from error
    return text.removesuffix("\n").split("\n") if text else []


def _write_known_hosts(path: Path, lines: list[str]) -> None:
    """Replace the file atomically: a tunnel may be reading it."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogateescape")
        fresh.chmod(0o600)
        os.replace(fresh, path)
    except OSError as error:
        with contextlib.suppress(OSError):  # the folder itself may be missing
            fresh.unlink()
        raise UsageError(f"{path} cannot be written: {error.strerror}", "make its folder yours and writable") from error


def _matches_pattern(pattern: str, name: str) -> bool:
    pieces = {"*": ".*", "?": "."}
    expression = "".join(pieces.get(char) or re.escape(char) for char in re.sub(r"\*+", "*", pattern).lower())
    return re.fullmatch(expression, name.lower(), re.DOTALL) is not None


def _is_hash_of(field: str, name: str) -> bool:
    """Return whether this is the hash that HashKnownHosts writes for a name."""
    salt = field.removeprefix(_HASH_MARK).partition("|")[0]
    try:
        digest = hmac.digest(base64.b64decode(salt, validate=True), name.encode(), "sha1")
    except ValueError:  # not base 64, or not even ASCII
        return False
    return field == f"{_HASH_MARK}{salt}|{base64.b64encode(digest).decode()}"


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
