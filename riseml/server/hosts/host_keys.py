"""The ssh keys of a host: the keys that it shows now, and the pinned ones."""

from __future__ import annotations

from pathlib import Path

from riseml import wire
from riseml.executors.transports.hostkeys import (
    BehindOtherHost,
    HostKey,
    find_hostname,
    has_pinned_key,
    pin_keys,
    scan_keys,
)
from riseml.executors.transports.ssh_command import Destination, find_destination
from riseml.spec.pool.types import HostSpec
from riseml.spec.scalars.engine_url import Scheme, parse_engine_url


def scan_host_keys(host: HostSpec, home: Path) -> wire.HostKeys:
    """Return the keys that a host shows to ssh now. `home` is RISEML_HOME; its known_hosts has the pinned keys.

    Raises:
        UsageError: the host is not reached over ssh, or only through another one.
        Unreachable: it shows no key.
    """
    destination = find_destination(host, home)
    return _show_keys(destination, scan_keys(destination))


def scan_new_host(host: HostSpec, home: Path) -> wire.HostKeys | None:
    """Return the keys that a new host shows; None when it is not reached over ssh, or when only ssh itself can compare
    its key with the pinned one.

    Raises:
        UsageError: this machine cannot scan the host, because it is reached through another one, and none of its keys
            is pinned.
        Unreachable: it shows no key.
    """
    if parse_engine_url(host.url).scheme is not Scheme.SSH:
        return None
    try:
        return scan_host_keys(host, home)
    except BehindOtherHost:
        if has_pinned_key(find_destination(host, home)):
            return None
        raise


def find_address(host: HostSpec, home: Path) -> str:
    """Return the address behind an alias of the user's ssh configuration; empty when the URL names the host itself.

    Raises:
        UsageError: a file of ssh cannot be read.
    """
    if parse_engine_url(host.url).scheme is not Scheme.SSH:
        return ""
    destination = find_destination(host, home)
    hostname = find_hostname(destination)
    return "" if hostname.lower() == destination.url.host.lower() else hostname


def find_pins(host: HostSpec, home: Path) -> str:
    """Return the file that has the pinned key of a host; empty when none is pinned, or it is not reached over ssh."""
    if parse_engine_url(host.url).scheme is not Scheme.SSH:
        return ""
    destination = find_destination(host, home)
    return str(destination.known_hosts) if has_pinned_key(destination) else ""


def pin_host_keys(host: HostSpec, home: Path, fingerprints: frozenset[str]) -> wire.HostKeys:
    """Pin those keys of a host that have these fingerprints, and return its keys.

    Raises:
        Conflict: the host shows no key with one of these fingerprints.
        UsageError, Unreachable: as `scan_host_keys`.
    """
    destination = find_destination(host, home)
    return _show_keys(destination, pin_keys(destination, fingerprints))


def _show_keys(destination: Destination, keys: tuple[HostKey, ...]) -> wire.HostKeys:
    views: list[wire.HostKeyView] = [
        {"kind": key.title, "fingerprint": key.fingerprint, "pinned": key.pinned.value} for key in keys
    ]
    return {"host": destination.name, "known_hosts": str(destination.known_hosts), "keys": views}
