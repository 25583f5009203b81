"""Make links below a folder, only when they lead to a place below it, whatever other links exist."""

from __future__ import annotations

import os

from riseml.job_programs.folder_contents import PART
from riseml.job_programs.folder_paths import (
    FileErrorKind,
    FileInfo,
    FilesError,
    decode_name,
    describe_file,
    make_folders,
    split_path,
    translate,
)

_ABOVE = b".."


def leads_inside(path: str, target: str) -> bool:
    """Return whether a link leads to a place below the folder that its path begins in.

    `..` is allowed only at the beginning of the target. There it leaves the folders of `path`, which are not links,
    because no path of `folder_paths` goes through a link. After a name, `..` could leave the target of another link,
    and two links together could lead out. When all links of a tree obey this rule, none leads out, in whatever order
    they are followed.

    Example:
        >>> leads_inside("ckpt/last", "deep/w"), leads_inside("ckpt/last", "../x"), leads_inside("last", "../x")
        (True, True, False)

    Args:
        path: of the link, below the folder.
        target: what the link says.
    """
    try:
        words = decode_name(target).split(b"/")
        depth = len(split_path(path)) - 1
    except FilesError:
        return False
    if len(words) > 1 and not words[0]:
        return False  # an absolute path
    steps = [word for word in words if word not in (b"", b".")]
    above = 0
    while above < len(steps) and steps[above] == _ABOVE:
        above += 1
    return bool(target) and b"\0" not in decode_name(target) and _ABOVE not in steps[above:] and above <= depth


def make_link(root: int, path: str, target: str, owner: tuple[int, int] | None = None) -> FileInfo:
    """Make a link with the folders above it, in place of a file or a link that is there.

    Args:
        root: descriptor of the folder.
        path: of the link.
        target: what it says, as `FileInfo.target`.
        owner: uid and gid of what is made; None: this process.

    Raises:
        FilesError: it would lead out of the folder, or cannot be made.
    """
    parts = split_path(path)
    if not parts or parts[-1].startswith(PART.encode()):
        raise FilesError(FileErrorKind.BAD_PATH, path)
    if not leads_inside(path, target):
        raise FilesError(FileErrorKind.OUTSIDE, path)
    folder = make_folders(root, parts[:-1], path, owner)
    fresh = (PART + os.urandom(8).hex()).encode()
    try:
        os.symlink(decode_name(target), fresh, dir_fd=folder)
        try:
            if owner is not None:
                os.chown(fresh, owner[0], owner[1], dir_fd=folder, follow_symlinks=False)
            os.rename(fresh, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(fresh, dir_fd=folder)
            raise
        status = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        return describe_file(folder, parts[-1], parts[-1], status)
    except OSError as error:
        raise translate(error, path) from None
    finally:
        os.close(folder)
