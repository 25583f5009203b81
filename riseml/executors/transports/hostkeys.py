"""Host keys of ssh: what a host shows now, what is pinned, and the pinning. Nothing is pinned that nobody has seen:
whoever pins names fingerprints, and only a key that the host still shows and that has one of them is written.
"""

from __future__ import annotations

import base64
import contextlib
import enum
import hashlib
import hmac
import os
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from riseml.errors import Conflict, Unreachable, UsageError
from riseml.executors.transports.ssh_command import Destination

_PATIENCE = 10  # seconds
_MARKERS = ("@revoked", "@cert-authority")
_SHORT = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA", "ssh-dss": "DSA"}


class Pinned(enum.Enum):
    """How a key stands to known_hosts."""

    NO = "no"  # the host has no key of this kind there
    YES = "yes"
    OTHER = "other"  # another one is there


@dataclass(frozen=True, slots=True)
class HostKey:
    """One key that a host shows. `kind` is as in known_hosts, `ssh-ed25519`; `blob` the key itself, in base 64."""

    kind: str
    blob: str
    pinned: Pinned

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` shows it."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def title(self) -> str:
        """`ED25519`."""
        return _SHORT.get(self.kind, self.kind.partition("-sha2-")[0].upper())


def scan_keys(destination: Destination) -> tuple[HostKey, ...]:
    """The keys that a host shows now.

    Raises:
        Unreachable: it shows none.
        UsageError: it is behind another host, and cannot be asked from here; or a file of ssh cannot be read.
    """
    place = _resolve(destination)
    command = ["ssh-keyscan", "-T", str(_PATIENCE), "-p", place["port"], place["hostname"]]
    said = _ask(command, destination).stdout
    name = _entry_name(place)
    known = list(_read_pinned(destination.known_hosts, name))
    found = []
    for line in said.splitlines():
        words = line.split()
        if len(words) >= 3 and not line.startswith("#") and _is_key(words[2]):
            kinds = {blob for kind, blob in known if kind == words[1]}
            pinned = Pinned.YES if words[2] in kinds else Pinned.OTHER if kinds else Pinned.NO
            found.append(HostKey(words[1], words[2], pinned))
    if not found:
        raise Unreachable(
            f"host {destination.name} ({destination.url}) shows no host key",
            f"is it up, and does sshd listen there? `{shlex.join(command)}` says more",
        )
    return tuple(sorted(found, key=lambda key: key.kind))


def pin_keys(destination: Destination, fingerprints: frozenset[str]) -> tuple[HostKey, ...]:
    """Write those of a host's keys into its known_hosts that have these fingerprints, in place of what stood there.

    Raises:
        Unreachable: it shows no key.
        UsageError: known_hosts cannot be read or written.
        Conflict: it shows none with one of these fingerprints.
    """
    keys = scan_keys(destination)
    chosen = [key for key in keys if key.fingerprint in fingerprints]
    if not chosen:
        shown = ", ".join(key.fingerprint for key in keys)
        raise Conflict(
            f"host {destination.name} has no key with the fingerprint {', '.join(sorted(fingerprints))}",
            f"it shows {shown}: if that is not what its owner says, another machine answers in its place",
        )
    name = _entry_name(_resolve(destination))
    path = destination.known_hosts
    kept = [line for line in _read_lines(path) if not _is_entry(line, name)]
    _write(path, [*kept, *(f"{name} {key.kind} {key.blob}" for key in chosen)])
    return scan_keys(destination)


def _resolve(destination: Destination) -> dict[str, str]:
    """What the user's configuration of ssh makes of the host: aliases, ports, jumps."""
    url = destination.url
    port = [] if url.port is None else ["-p", str(url.port)]
    answer = _ask(["ssh", "-G", *port, "--", url.host], destination)
    place = dict(line.split(" ", 1) for line in answer.stdout.splitlines() if " " in line)
    if not {"hostname", "port"} <= place.keys():
        said = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
        raise UsageError(f"ssh cannot tell what host {destination.name} ({url}) is: {said}", f"try `ssh -G {url.host}`")
    for jump in ("proxyjump", "proxycommand"):
        if place.get(jump, "none") != "none":
            raise UsageError(
                f"host {destination.name} is reached through another one ({place[jump]}), so that its key cannot be "
                "asked for from here",
                f"run `ssh-keyscan {url.host}` over there, and put what it says into {destination.known_hosts}",
            )
    return place


def _ask(command: list[str], destination: Destination) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=2 * _PATIENCE,
            check=False,
        )
    except OSError as error:
        raise Unreachable(f"{command[0]} cannot be started: {error}", "install the OpenSSH client") from error
    except subprocess.TimeoutExpired as error:
        raise Unreachable(
            f"host {destination.name} ({destination.url}) does not answer", "is it up, and does sshd listen there?"
        ) from error


def _entry_name(place: dict[str, str]) -> str:
    """What ssh looks for in known_hosts."""
    if place.get("hostkeyalias"):
        return place["hostkeyalias"]
    return place["hostname"] if place["port"] == "22" else f"[{place['hostname']}]:{place['port']}"


def _read_pinned(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """Kind and key of each entry."""
    for line in _read_lines(path):
        if _is_entry(line, name):
            words = line.split()
            yield words[1], words[2]


def _is_entry(line: str, name: str) -> bool:
    words = line.split()
    if len(words) < 3 or line.startswith("#") or words[0] in _MARKERS:
        return False
    return any(one == name or _is_hash_of(one, name) for one in words[0].split(","))


def _is_hash_of(pattern: str, name: str) -> bool:
    """`|1|salt|hash`, as HashKnownHosts writes it."""
    parts = pattern.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return False
    try:
        salt, wanted = base64.b64decode(parts[2]), base64.b64decode(parts[3])
    except ValueError:  # no base 64, or not even ASCII
        return False
    return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), wanted)


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) > 0
    except ValueError:
        return False


def _read_lines(path: Path) -> list[str]:
    """The file may have comments in any encoding; they stay as they are."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "make it yours and readable") from error


def _write(path: Path, lines: list[str]) -> None:
    """All or nothing, for a tunnel may be reading it."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogateescape")
        fresh.chmod(0o600)
        os.replace(fresh, path)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may be the folder that is wrong
            fresh.unlink()
        raise UsageError(f"{path} cannot be written: {error.strerror}", "make its folder yours and writable") from error
