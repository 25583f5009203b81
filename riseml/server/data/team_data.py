"""The data of a team: what `data://` and the /data of a job mean on a team's server.

    RISEML_DATA/team/...         data://team/x       everyone reads it, admins write it
    RISEML_DATA/projects/P/...   data://project/P/x  the members of the team project P
    RISEML_DATA/users/U/...      data://user/x, data://x   U alone

A job finds its user's data as /data, as on a server for one user. Within it are /data/team, /data/user (the same as
/data) and, if the experiment belongs to a team project, /data/project/P. It sees nothing else: each is a mount of its
own, read-only. The jobs of a key that is bound to a project find /data/team and /data/project/P alone. The server makes
the folders of the user's data on which the others are mounted; no user writes there.

Everything in these folders belongs to the server, and nobody else changes it. So no user can put a link where the
server or an engine follows it: `riseml.job_programs.folder_links` makes none that leads out of its folder. The folders
above are for the server alone, and other users of the machine reach nothing.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from riseml.base.errors import EngineError, NotFound, Refused, UsageError
from riseml.base.folders import open_folder
from riseml.base.records import dataclass
from riseml.base.roles import Role
from riseml.files.storage.outputs import prepare_data
from riseml.job_programs.folder_listing import Page
from riseml.model import Caller, Experiment

_PRIVATE = 0o700  # of the folders above the spaces
_OPEN = 0o755  # of a space, which a job reads as its own user


class SpaceKind(enum.Enum):
    """Whose data a space has. The values are the first words of addresses and of paths in /data."""

    TEAM = "team"
    PROJECT = "project"
    USER = "user"


MOUNTED = frozenset(kind.value for kind in SpaceKind)
"""First names in a user's data on which jobs find a mount."""

_ABOVE = {SpaceKind.PROJECT: "projects", SpaceKind.USER: "users"}


@dataclass(frozen=True, slots=True)
class DataSpace:
    """The data of the team, of a team project or of a user."""

    kind: SpaceKind
    name: str = ""  # of the project or the user; empty: the team's

    @property
    def folder(self) -> PurePosixPath:
        """Its folder below the root of data."""
        return PurePosixPath(_ABOVE[self.kind], self.name) if self.name else PurePosixPath(self.kind.value)

    @property
    def path(self) -> str:
        """Its path in /data of jobs, and after `data://`."""
        return f"{self.kind.value}/{self.name}" if self.kind is SpaceKind.PROJECT else self.kind.value


TEAM = DataSpace(SpaceKind.TEAM)


@dataclass(frozen=True, slots=True)
class SpacePath:
    """A path in a space."""

    space: DataSpace
    below: tuple[str, ...]  # the path in its folder, name by name
    prefix: str  # what the user wrote before that; empty: nothing, which means the user's own


def find_space(names: Sequence[str], user: str) -> SpacePath:
    """Return the space of a path after `data://`.

    Args:
        names: the path, name by name.
        user: who has written it.

    Raises:
        UsageError: a project is missing, or the path is below a name of the user's own data on which jobs find a mount.
    """
    match names:
        case [SpaceKind.USER.value, first, *_] if first in MOUNTED:
            other = "project/NAME" if first == SpaceKind.PROJECT.value else first
            raise UsageError(
                f"no data of yours is named {first}: jobs find data://{other} as /data/{other}",
                f"write data://{other}, or choose another name below data://user",
            )
        case [SpaceKind.TEAM.value, *below]:
            return SpacePath(TEAM, tuple(below), SpaceKind.TEAM.value)
        case [SpaceKind.PROJECT.value, project, *below] if project:
            space = DataSpace(SpaceKind.PROJECT, project)
            return SpacePath(space, tuple(below), space.path)
        case [SpaceKind.PROJECT.value, *_]:
            raise UsageError("data://project names no project", "write data://project/NAME, with a project of yours")
        case [SpaceKind.USER.value, *below]:
            return SpacePath(DataSpace(SpaceKind.USER, user), tuple(below), SpaceKind.USER.value)
        case _:
            return SpacePath(DataSpace(SpaceKind.USER, user), tuple(names), "")


def find_data_user(experiment: Experiment) -> str | None:
    """Return the user whose own data the jobs of an experiment read; None: a key of its project alone has submitted it,
    and that key reads no data of its user."""
    return None if experiment.plan.bound else experiment.owner.user


def list_job_spaces(user: str | None, team_project: str | None) -> tuple[DataSpace, ...]:
    """Return what a job reads.

    Args:
        user: whose own data it reads; None: nobody's.
        team_project: to which the experiment belongs; None: to its user alone.
    """
    project = () if team_project is None else (DataSpace(SpaceKind.PROJECT, team_project),)
    own = () if user is None else (DataSpace(SpaceKind.USER, user),)
    return (TEAM, *project, *own)


def list_job_folders(user: str | None, team_project: str | None) -> tuple[tuple[str, DataSpace], ...]:
    """Return what is mounted in a job: paths in /data, of which an empty one is /data itself, and what is there.

    The arguments are those of `list_job_spaces`.
    """
    own = () if user is None else (("", DataSpace(SpaceKind.USER, user)),)
    return (*own, *((space.path, space) for space in list_job_spaces(user, team_project)))


def list_job_sources(user: str | None, team_project: str | None) -> tuple[PurePosixPath, ...]:
    """Return the folders below the root of data that a host needs for a job: those of its spaces, and those in the
    user's on which the others are mounted.

    The arguments are those of `list_job_spaces`.
    """
    spaces = list_job_spaces(user, team_project)
    mounted = () if user is None else tuple(find_user_folder(user) / space.path for space in spaces)
    return (*(space.folder for space in spaces), *mounted)


def find_user_folder(user: str) -> PurePosixPath:
    """Return the folder of a user's data below the root of data: what their jobs find as /data."""
    return DataSpace(SpaceKind.USER, user).folder


def hide_mounted(path: SpacePath, page: Page) -> Page:
    """Return a listing without the folders on which jobs find mounts; they are in the root of a user's data alone."""
    if path.space.kind is not SpaceKind.USER or path.below:
        return page
    return page._replace(entries=[entry for entry in page.entries if entry.path.split("/", 1)[0] not in MOUNTED])


def check_job_space(path: SpacePath, user: str | None, team_project: str | None) -> None:
    """Check that an experiment may read what its `data` names. The arguments are those of `list_job_spaces`.

    Raises:
        Refused: it is the data of another project, or of the user of a key that is for a project alone.
    """
    if user is None and path.space.kind is SpaceKind.USER:
        raise Refused(
            f"train.data: a key of the project {team_project} alone reads no data of its user",
            f"copy it to data://project/{team_project}, or submit with a key that is not bound to a project",
        )
    if path.space not in list_job_spaces(user, team_project):
        raise Refused(
            f"train.data: an experiment reads data://{path.space.path} only when it belongs to that project",
            f"write `project: {path.space.name}` into riseml.yml, if you are a member",
        )


def check_access(space: DataSpace, caller: Caller, *, writes: bool) -> None:
    """Check that a caller may read or write the files of a space.

    Raises:
        NotFound: it is that of a project which the caller does not see.
        Refused: the caller may read, and not write; or the key is for one project.
    """
    is_bound = caller.project is not None and space != DataSpace(SpaceKind.PROJECT, caller.project)
    match space.kind:
        case SpaceKind.PROJECT:
            role = dict(caller.projects).get(space.name)
            if is_bound or (role is None and caller.role is not Role.ADMIN):
                raise NotFound(f"there is no project {space.name}", "`riseml project` lists yours")
            if writes and caller.role is not Role.ADMIN and (role is None or role < Role.MEMBER):
                raise Refused(f"you may only read data://{space.path}", "its maintainer makes you a member")
        case SpaceKind.TEAM if writes and (is_bound or caller.role is not Role.ADMIN):
            raise Refused("only admins write data://team", "copy to data://user/, or ask an admin")
        case SpaceKind.USER if is_bound:
            raise Refused(f"this key is for the project {caller.project} alone", f"use data://project/{caller.project}")


def prepare_spaces(root: Path, spaces: Sequence[DataSpace]) -> None:
    """Make the folders of spaces that are missing, below folders that only the server enters.

    Raises:
        EngineError: one cannot be made, or is a link or a file (permanent).
    """
    prepare_data(root)
    for space in spaces:
        try:
            os.close(open_space(root, space, makes=True))
        except OSError as error:
            raise EngineError(
                f"the data folder {root / space.folder} cannot be made: {error.strerror or error}",
                "look at it, or choose another root in RISEML_DATA",
                permanent=True,
            ) from error


def prepare_job_data(root: Path, user: str | None, team_project: str | None) -> None:
    """Make the folders that a job reads as /data and within it, where they are missing.

    The arguments are those of `list_job_spaces`, after the root of data.

    Raises:
        EngineError: one cannot be made, is a link or a file, or the user's data has something where a job finds a mount
            (permanent).
    """
    spaces = list_job_spaces(user, team_project)
    prepare_spaces(root, spaces)
    if user is None:
        return
    own = DataSpace(SpaceKind.USER, user)
    for space in spaces:
        try:
            is_empty = _prepare_mounted(root, own, space.path)
        except OSError as error:
            raise EngineError(
                f"the folder {root / own.folder / space.path} cannot be made: {error.strerror or error}",
                f"the admin removes what is there: jobs find data://{space.path} in its place",
                permanent=True,
            ) from error
        if not is_empty:
            raise EngineError(
                f"{root / own.folder / space.path} has files, which no job of {user} would see",
                f"the admin moves them: jobs find data://{space.path} in its place",
                permanent=True,
            )


def _prepare_mounted(root: Path, own: DataSpace, path: str) -> bool:
    """Make a folder in a user's data on which a job finds a mount; return True when it is empty."""
    folder = open_space(root, own, makes=True)
    for part in path.split("/"):
        try:
            inner = _open_part(folder, part, _OPEN, makes=True)
        finally:
            os.close(folder)
        folder = inner
    try:
        return not os.listdir(folder)
    finally:
        os.close(folder)


def open_space(root: Path, space: DataSpace, *, makes: bool) -> int:
    """Return a descriptor of the folder of a space; no part of it is followed through a link.

    Raises:
        OSError: it cannot be opened or made.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    *above, last = space.folder.parts
    for part, mode in (*((name, _PRIVATE) for name in above), (last, _OPEN)):
        try:
            inner = _open_part(folder, part, mode, makes=makes)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _open_part(folder: int, name: str, mode: int, *, makes: bool) -> int:
    if not makes:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    inner = open_folder(folder, name, mode)
    if os.fstat(inner).st_uid == os.geteuid():
        os.fchmod(inner, mode)  # whatever the umask, or an engine that has made it
    return inner
