"""The places of outputs and data on every host, and their mounts in a helper container."""

from __future__ import annotations

from pathlib import Path

from riseml.base.settings import Settings
from riseml.model import Mount
from riseml.planning.launch import DATA, OUTPUT, StorageRoots
from riseml.server.hosts.mode import HostMode, LocalMode, PoolMode
from riseml.spec.pool.types import Volume

Root = str | Volume
"""A folder of the hosts, as an absolute path, or a Docker volume."""


def find_roots(mode: HostMode, settings: Settings) -> StorageRoots:
    """Return the roots of outputs and data: those of pool.yml, else the folders of the settings on each host."""
    output, data = _named_roots(mode)
    return StorageRoots(output or str(settings.output), data or str(settings.data), str(Path.home()))


def find_mounts(mode: HostMode, settings: Settings) -> tuple[Mount, tuple[Mount, ...]]:
    """Return the output root as a mount, and the other mounts that jobs need.

    Docker creates missing folders, except those that pool.yml names: a storage that is not mounted must be noticed.
    """
    roots = find_roots(mode, settings)
    output, data = _named_roots(mode)
    return _make_mount(roots.output, OUTPUT, makes=output is None), (_make_mount(roots.data, DATA, makes=data is None),)


def describe_root(root: Root) -> str:
    """Return a root for people: its path, or `volume NAME`."""
    return f"volume {root.name}" if isinstance(root, Volume) else root


def _named_roots(mode: HostMode) -> tuple[Root | None, Root | None]:
    """Return the roots of outputs and of data that pool.yml names."""
    match mode:
        case LocalMode():
            return None, None
        case PoolMode(spec):
            return spec.output, spec.data


def _make_mount(root: Root, target: str, *, makes: bool) -> Mount:
    if isinstance(root, Volume):
        return Mount(root.name, target, volume=root)
    return Mount(root, target, makes=makes)
