"""The files of a project that say what it is, read within bounds. Links are not followed, and nothing is executed."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

_MOST_FOLDERS = 300
_MOST_ENTRIES = 5_000  # of all folders
_MOST_FILES = 300
_MOST_BYTES = 256 * 2**10  # of one file
_MOST_TOTAL = 2 * 2**20  # bytes of all files
_DEPTH = 3  # folders below the project's own
_SKIPPED = frozenset(
    {
        *("venv", "env", "node_modules", "__pycache__", "site-packages", "build", "dist", "wandb", "mlruns", "runs"),
        *("lightning_logs", "outputs", "output", "logs", "data", "datasets", "docs", "tests", "test"),
    }
)
_NAMES = frozenset(
    {
        *("pyproject.toml", "environment.yml", "environment.yaml", "conda.yml", "conda.yaml", "Pipfile"),
        *("Pipfile.lock", "setup.py", "setup.cfg", "poetry.lock", "uv.lock", "Dockerfile", ".python-version"),
    }
)
_LOCKS = frozenset({"poetry.lock", "uv.lock", "Pipfile.lock"})  # that they are there is enough
_SUFFIXES = (".py", ".ipynb", ".sh", ".yaml", ".yml")


def read_project_files(folder: Path) -> Mapping[str, str]:
    """Return the text of each file that may say something, by its path in the project.

    A file that is too large, not UTF-8, or cannot be read is left out; the text of a lock file is empty.
    """
    texts: dict[str, str] = {}
    total = 0
    for path in _walk(folder):
        if len(texts) >= _MOST_FILES or total > _MOST_TOTAL:
            break
        name = path.rpartition("/")[2]
        text = "" if name in _LOCKS else _read_text(folder / path)
        if text is not None:
            texts[path] = text
            total += len(text)
    return texts


def _walk(folder: Path) -> Iterator[str]:
    """Yield the paths of files with a promising name, those of the upper folders first."""
    waiting = deque([("", 0)])
    folders = entries = 0
    while waiting and folders < _MOST_FOLDERS and entries < _MOST_ENTRIES:
        place, depth = waiting.popleft()
        rows = _list_folder(folder / place)
        folders += 1
        entries += len(rows)
        if place and any(row[0] == "pyvenv.cfg" for row in rows):
            continue  # a virtual environment
        for name, is_folder in rows:
            path = f"{place}/{name}" if place else name
            if is_folder and depth < _DEPTH and not name.startswith(".") and name not in _SKIPPED:
                waiting.append((path, depth + 1))
            elif not is_folder and _is_promising(name, depth):
                yield path


def _list_folder(folder: Path) -> list[tuple[str, bool]]:
    """Return the names in a folder, and whether each is a folder; links are left out."""
    try:
        with os.scandir(folder) as scan:
            return sorted(
                (entry.name, entry.is_dir(follow_symlinks=False))
                for entry in islice(scan, _MOST_ENTRIES)
                if not entry.is_symlink()
            )
    except OSError:
        return []


def _is_promising(name: str, depth: int) -> bool:
    if name in _NAMES or (name.endswith(".txt") and "require" in name):
        return depth <= 1
    return name.endswith(_SUFFIXES) and not name.startswith(".")


def _read_text(path: Path) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with open(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                return None
            return file.read(_MOST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
