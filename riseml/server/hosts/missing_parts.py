"""Parts of an earlier run that the hosts cannot get any more: its image, and names in its data folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from riseml.base.errors import RisemlError
from riseml.base.secrets import RegistryCredential
from riseml.server.hosts.host_set import HostSet

_MOST_NAMED = 5  # names in a sentence


def find_missing_image(hosts: HostSet, image: str, digest: str, credential: RegistryCredential | None = None) -> str:
    """Return why no host can have an image; empty: a host has it, or its registry does.

    Args:
        hosts: of this server; processes have no images.
        image: the name in riseml.yml.
        digest: the resolved image: `python@sha256:...`, or the ID of an image.
        credential: for its registry; None: it needs none.
    """
    if all(not executor.contained for executor in hosts.pool.executors.values()):
        return ""
    for _, executor in sorted(hosts.pool.executors.items()):
        try:
            if executor.observe(frozenset({digest})).images[digest].present:
                return ""
        except (RisemlError, KeyError):
            continue  # another host may have it
    if digest.startswith("sha256:"):
        return f"the image {image} was {digest[:19]}..., which no host has and no registry gives"
    problem = "no host answers that could ask its registry"
    for _, executor in sorted(hosts.pool.executors.items()):
        registries = executor.capabilities.registries
        if registries is not None:
            try:
                registries.check_registry(digest, credential)
            except RisemlError as error:
                problem = error.message
            else:
                return ""
    return f"the image {image} was {digest}, which no host has, and {problem}"


def find_missing_data(hosts: HostSet, names: Sequence[str], below: PurePosixPath) -> str:
    """Return a sentence about names that the data folder lacks; empty when it has all, or the server does not see the
    folder.

    Args:
        hosts: of this server.
        names: that a capsule has.
        below: the folder that a job finds as /data, below the root of data.
    """
    root = hosts.roots.data
    if not isinstance(root, str) or not all(hosts.is_this_machine(name) for name in hosts.names):
        return ""
    lost = [name for name in names if "/" not in name and not _has_entry(Path(root) / below, name)]
    if not lost:
        return ""
    more = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
    return f"the data folder {Path(root) / below} lacks {', '.join(lost[:_MOST_NAMED])}{more}"


def _has_entry(folder: Path, name: str) -> bool:
    """Return True when a folder has an entry of this name. The name comes from a capsule, and may be invalid."""
    if name in ("", ".", ".."):
        return False
    try:
        return (folder / name).exists()
    except OSError:  # the name is too long, or permission is missing
        return False
