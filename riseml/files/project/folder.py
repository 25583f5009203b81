"""Find the project folder and read its riseml.yml."""

from __future__ import annotations

import os
import re
from pathlib import Path

from riseml.base.errors import NotFound, UsageError
from riseml.base.records import dataclass

CONFIG = "riseml.yml"

RESERVED_NAME = ".riseml"
"""The folder that riseml itself makes in the working directory of a job."""

_NAME = re.compile(r"^project:[ \t]+([\"']?)([A-Za-z0-9_.-]+)\1[ \t]*(?:#.*)?\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Project:
    """A folder and its riseml.yml."""

    folder: Path  # absolute
    file: Path  # absolute; inside `folder`, under any name


def find_project(folder: Path, file: Path | None = None) -> Project:
    """Return the project in `folder`, or the project of `file`.

    `file` is a riseml.yml under any name, or a folder that contains a riseml.yml. Its project is the nearest folder
    with a riseml.yml from its own folder up to `folder`: `conf/a.yml` belongs to the project in `folder`. When there is
    none, the project is the file's own folder.

    Raises:
        NotFound: there is none; the hint says what to do.

    Example:
        find_project(Path.cwd()).file
    """
    path = folder / (file or CONFIG)
    if file is not None and path.is_dir():
        path = path / CONFIG
    if path.is_file():
        return Project(_find_root(folder.absolute(), path.absolute()), path.absolute())
    if file is not None:
        absent = f"there is no {CONFIG} in {file}" if (folder / file).is_dir() else f"there is no file {file}"
        message = f"{file} is not a regular file" if path.exists() else absent
        raise NotFound(message, "give the path of a riseml.yml; `riseml init` writes one")
    raise NotFound(f"there is no {CONFIG} in {folder}", _hint_at_parent(folder))


def _find_root(folder: Path, file: Path) -> Path:
    own = file.parent
    if ".." in file.parts or not own.is_relative_to(folder):
        return own
    between = (own, *own.parents)[: len(own.parts) - len(folder.parts) + 1]
    return next((place for place in between if (place / CONFIG).is_file()), own)


def read_config(project: Project) -> str:
    """Return the text of the riseml.yml.

    Raises:
        UsageError: the file cannot be read, or is not UTF-8.
    """
    try:
        return project.file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {project.file}: {error.strerror}", "check its permissions") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{project.file}:{line}: this is not UTF-8 text", "save the file as UTF-8") from None


def find_project_name(config: str) -> str | None:
    """Return the project's name without parsing YAML (parsing takes about 100 ms of imports).

    None when the line `project: NAME` is missing, repeated or written in another way: parse the YAML then.

    Example:
        >>> find_project_name("project: ai-toaster")
        'ai-toaster'
    """
    matches = _NAME.findall(config)
    return str(matches[0][1]) if len(matches) == 1 else None


def _hint_at_parent(folder: Path) -> str:
    for depth, parent in enumerate(folder.absolute().parents, start=1):
        if os.path.isfile(parent / CONFIG):
            above = "/".join([".."] * depth)
            return f"there is one in {above}: go there with `cd {above}`, or add `-f {above}/{CONFIG}`"
    return f"go to your project's folder, or write a {CONFIG} here with `riseml init`"
