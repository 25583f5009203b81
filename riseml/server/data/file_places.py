"""Open the files of `data://` and `output://`: on the server's own disk, or through a host.

Where the server sees a folder it reads the folder itself. It reaches a volume, or a folder of another machine, through
the host (`executors.capabilities.StorageAccess`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from riseml.base.errors import EngineError, NotFound, Refused, Unreachable
from riseml.base.folders import find_intruder, name_user
from riseml.base.names import CanonicalId, HostName
from riseml.executors.base import Executor
from riseml.executors.capabilities import StorageAccess, StorageRequest
from riseml.files.local_files import LocalFiles
from riseml.files.storage.outputs import prepare_data
from riseml.files.storage.owned_folders import open_owned_folder
from riseml.files.storage_files import StorageFiles
from riseml.job_programs.folder_paths import FOLDER
from riseml.model import Experiment, Mount, Owner
from riseml.planning.launch import DATA, OUTPUT, output_folder
from riseml.server.data.team_data import DataSpace, open_space, prepare_spaces
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.storage_mounts import Root, describe_root
from riseml.spec.pool.types import Volume

_SUPERUSER = 0


def open_output(
    hosts: HostSet, members: Sequence[Experiment], canonical_id: CanonicalId, host: HostName | None = None
) -> StorageFiles:
    """Return the files in the output of an experiment, or of all experiments of a set.

    Args:
        hosts: of this server.
        members: the experiment; or those of the set.
        canonical_id: its ID.
        host: the host with the output; None: the first one on which a job ran.

    Raises:
        NotFound: it has no output.
        Unreachable: the host that has it does not answer.
    """
    first = members[0]
    if first.reads:
        raise NotFound(
            f"{canonical_id} trains nothing, and has no output", "name an experiment that `riseml train` made"
        )
    below = output_folder(first)
    if first.sub is not None and canonical_id.sub is None:
        below = below.parent
    host = host or next((job.host for experiment in members for job in experiment.gang if job.host is not None), None)
    root = hosts.find_target(host).roots.output
    title = f"output://{canonical_id}"
    if _is_visible(hosts, root, host):
        target = partial(_open_owned, Path(str(root)), below, first.owner)
        return LocalFiles(
            title, partial(_open_output, Path(str(root)), below, first.owner), target, _choose_owner(first.owner)
        )
    image = first.image_of(first.gang[0].name).reference
    mount, inner = _mount_folder(root, OUTPUT, below)
    owner = (first.owner.uid, first.owner.gid)
    return _find_access(hosts, host, title).open_storage(StorageRequest(title, mount, inner, owner, image))


def open_data(hosts: HostSet, owner: Owner, *, writes: bool) -> StorageFiles:
    """Return the files in the data folder.

    Raises:
        Unreachable: the host that has it does not answer.
    """
    host = next(iter(hosts.names), None)
    root = hosts.find_target(host).roots.data
    if _is_visible(hosts, root, host):
        path = Path(str(root))
        return LocalFiles(
            "data:/", partial(_open_data, path), partial(_open_data_to_write, path, owner), _choose_owner(owner)
        )
    mount = Mount(_name_source(root), DATA, read_only=not writes, volume=root if isinstance(root, Volume) else None)
    return _find_access(hosts, host, "data:/").open_storage(StorageRequest("data:/", mount))


def open_team_data(hosts: HostSet, space: DataSpace, *, writes: bool) -> StorageFiles:
    """Return the files in a space of a team's data. The caller was checked (`check_access`).

    Raises:
        Unreachable: the host that has it does not answer.
    """
    host = next(iter(hosts.names), None)
    root = hosts.find_target(host).roots.data
    title = f"data://{space.path}"
    if _is_visible(hosts, root, host):
        path = Path(str(root))
        return LocalFiles(
            title, partial(_open_space, path, space), partial(_open_space_to_write, path, space), owner=None
        )
    mount = Mount(f"{_name_source(root)}/{space.folder}", DATA, read_only=not writes, makes=True)
    return _find_access(hosts, host, title).open_storage(StorageRequest(title, mount))


def _is_visible(hosts: HostSet, root: Root, host: HostName | None) -> bool:
    return isinstance(root, str) and (host is None or hosts.is_this_machine(host))


def _mount_folder(root: Root, target: str, below: PurePosixPath) -> tuple[Mount, str]:
    """Return the mount of a helper, and the path of the folder in it: a volume is mounted as a whole."""
    if isinstance(root, Volume):
        return Mount(root.name, target, volume=root), str(below)
    return Mount(f"{root}/{below}", target, makes=False), ""


def _name_source(root: Root) -> str:
    return root.name if isinstance(root, Volume) else root


def _find_access(hosts: HostSet, host: HostName | None, title: str) -> StorageAccess:
    executor: Executor | None = None if host is None else hosts.pool.executors.get(host)
    if executor is None:
        raise Unreachable(f"{host}, the host that has {title}, is not in the pool", "`riseml pool` lists the hosts")
    trouble = hosts.find_troubles().get(executor.name)
    if trouble is not None:
        raise Unreachable(f"{host}, the host that has {title}, does not answer: {trouble.message}", trouble.hint)
    if executor.capabilities.storage is None:
        root = describe_root(hosts.roots.output)
        raise Refused(f"{host}, the host that has {title}, shows no files to the server", f"they are in {root} there")
    return executor.capabilities.storage


def _choose_owner(owner: Owner) -> tuple[int, int] | None:
    """Return the owner of what a server that runs as root makes; None for any other server."""
    return (owner.uid, owner.gid) if os.geteuid() == _SUPERUSER else None


def _open_output(root: Path, below: PurePosixPath, owner: Owner) -> int:
    """Open an output folder that exists; a link or another user's folder on the way is refused."""
    trusted = {_SUPERUSER, os.geteuid(), owner.uid}
    try:
        at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in below.parts:
            try:
                inner = os.open(part, FOLDER, dir_fd=at)
            finally:
                os.close(at)
            at = inner
            uid = os.fstat(at).st_uid
            if uid not in trusted:
                os.close(at)
                raise Refused(f"{root / below}: {part} belongs to {name_user(uid)}", "riseml reads nothing there")
    except FileNotFoundError:
        raise NotFound(
            f"there is no output folder {root / below}", "it is made when the experiment starts, and may be removed"
        ) from None
    except OSError as error:
        raise EngineError(f"the output folder {root / below} cannot be opened: {error.strerror}") from error
    return at


def _open_owned(root: Path, below: PurePosixPath, owner: Owner) -> int:
    try:
        with open_owned_folder(root, below, owner) as opened:
            return os.dup(opened)
    except OSError as error:
        raise EngineError(f"the output folder {root / below} cannot be opened: {error.strerror}") from error


def _open_data(root: Path) -> int:
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"there is no data folder {root}", "`riseml cp FILE data://` makes it") from None
    except OSError as error:
        raise EngineError(f"the data folder {root} cannot be opened: {error.strerror}") from error


def _open_space(root: Path, space: DataSpace) -> int:
    try:
        return open_space(root, space, makes=False)
    except FileNotFoundError:
        raise NotFound(f"nothing is in data://{space.path}", f"`riseml cp FILE data://{space.path}/`") from None
    except OSError as error:
        raise EngineError(f"the data folder {root / space.folder} cannot be opened: {error.strerror}") from error


def _open_space_to_write(root: Path, space: DataSpace) -> int:
    prepare_spaces(root, [space])
    problem = find_intruder(root.absolute(), {_SUPERUSER, os.geteuid()})
    if problem is not None:
        raise Refused(f"the data folder {root} is not safe: {problem}", "choose another one in RISEML_DATA")
    return _open_space(root, space)


def _open_data_to_write(root: Path, owner: Owner) -> int:
    prepare_data(root)
    problem = find_intruder(root.absolute(), {_SUPERUSER, os.geteuid(), owner.uid})
    if problem is not None:
        raise Refused(f"the data folder {root} is not safe: {problem}", "choose another one in RISEML_DATA")
    return _open_data(root)
