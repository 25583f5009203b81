"""What a job has written outside its OUTPUT_DIR, as its executor finds it before it removes the job. No I/O.

The working folder of a job goes with the job. `WrittenReader` (executors.capabilities) yields what the job has written
there, so that the server can keep it, or say that it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from riseml.base.records import dataclass
from riseml.files.archives.entries import ArchiveEntry
from riseml.job_programs.folder_paths import decode_name
from riseml.model import JobKey
from riseml.spec.scalars.output_patterns import OutputPattern

MOST_LISTED = 100_000
"""Files and folders of one job that are looked at, at most."""

CACHES = frozenset(
    {
        ".cache",
        ".config",
        ".git",
        ".ipynb_checkpoints",
        ".local",
        ".matplotlib",
        ".mypy_cache",
        ".npm",
        ".nv",
        ".pytest_cache",
        ".riseml",
        ".ruff_cache",
        ".triton",
        "__pycache__",
        "node_modules",
    }
)
"""Folders that programs make for themselves: no user misses what is in them."""

HOME_CACHES = frozenset({"gensim-data", "nltk_data", "scikit_learn_data", "seaborn-data", "tensorflow_datasets"})
"""Folders of the home folder to which libraries download what they can get again; most such names begin with a dot."""

_CACHE_ENDS = (".pyc", ".pyo", ".egg-info", ".lock")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file or link that a job has made or changed."""

    path: str  # below the folder that its pattern begins in, as in `job_programs.folder_paths`
    size: int = 0  # bytes
    mtime: int = 0  # nanoseconds since 1970
    executable: bool = False
    target: str | None = None  # target of a link; None: it is a file
    content: Iterator[bytes] | None = None  # read it before the next file; None: it was not requested, or is a link
    # the open folder and the name of a file that goes with its job, so that a link keeps it; None: it must be copied
    source: tuple[int, bytes] | None = None
    is_in_home: bool = False  # it is in a home folder that goes with the job, and not wanted


@dataclass(frozen=True, slots=True)
class Unread:
    """The job has written more than was looked at."""

    reason: str  # for people


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """Which files of a job the caller wants."""

    key: JobKey
    patterns: tuple[OutputPattern, ...] = ()  # the files whose contents are wanted
    home: str = ""  # the home folder of the job
    # lists the files of the project by path, as `WrittenFile.path`; called only if the job has written something
    list_project: Callable[[], Mapping[str, ArchiveEntry]] = field(default=dict)

    def wants(self, path: str) -> bool:
        """Return True for a path below the working folder whose content is wanted."""
        text = read_path(path)
        return any(pattern.is_below_folder and pattern.matches(text) for pattern in self.patterns)

    @property
    def elsewhere(self) -> tuple[OutputPattern, ...]:
        """The patterns of places outside of the working folder."""
        return tuple(pattern for pattern in self.patterns if not pattern.is_below_folder)


def read_path(path: str) -> str:
    """Return a `WrittenFile.path` as users write it in a pattern: with `%` instead of `%25`."""
    return decode_name(path).decode("utf-8", "surrogateescape")


def is_home_cache(path: str) -> bool:
    """Return True for a file of the home folder that a program has made for itself, such as `.keras/x.h5`."""
    top = path.split("/")[0]
    return top.startswith(".") or top in HOME_CACHES or is_cache(path)


def is_cache(path: str) -> bool:
    """Return True for a file that a program has made for itself, such as `__pycache__/x.pyc`."""
    *folders, name = path.split("/")
    return name.endswith(_CACHE_ENDS) or any(folder in CACHES or folder.endswith(_CACHE_ENDS) for folder in folders)
