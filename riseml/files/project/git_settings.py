"""What the user has told git about all repositories: its configuration, and `core.excludesFile`.

git's own order counts: the system's file, those of the user, those of the repository, variables; the last value wins.
`include` counts, and `includeIf` with the conditions `gitdir`, `gitdir/i`, `onbranch` and `hasconfig:remote.*.url`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.files.project.git_config import Setting, find_last, parse_config
from riseml.files.project.git_files import LARGEST_CONFIG, Repository, read_line, read_text

LARGEST_RULES = 1 << 20  # bytes of `core.excludesFile` and `info/exclude`
_SYSTEM = "/etc/gitconfig"
_MOST_INCLUDES = 100  # files that others include
_DEEPEST = 10  # files between the first and the last of a chain; as git
_MOST_VARIABLES = 100  # settings in GIT_CONFIG_KEY_0, GIT_CONFIG_KEY_1, ...
_REMOTE_URL = "remote.*.url:"  # the only condition that `hasconfig` has
_BRANCHES = "ref: refs/heads/"


@dataclass(frozen=True, slots=True)
class GitSettings:
    """What matters here of git's configuration."""

    excludes_file: Path | None  # `core.excludesFile`, or git's default; it need not exist
    hash_size: int  # bytes of the name of an object


def read_git_settings(environ: Mapping[str, str], repository: Repository | None) -> GitSettings:
    """Return git's settings for a repository; None: for a folder that is in none.

    Args:
        environ: of the command: HOME, XDG_CONFIG_HOME and what begins with GIT_CONFIG.
        repository: of the project.
    """
    settings = list(_ConfigReader(environ, repository).read_all())
    excludes = find_last(settings, "core.excludesfile")
    if excludes is None:
        folder = _find_user_folder(environ)
        file = None if folder is None else folder / "ignore"
    else:
        top = Path() if repository is None else repository.top
        file = _resolve(excludes, top, environ) if excludes else None
    is_long = (find_last(settings, "extensions.objectformat") or "").lower() == "sha256"
    return GitSettings(file, 32 if is_long else 20)


def read_excludes_file(settings: GitSettings) -> bytes:
    """Return the rules of `core.excludesFile`; empty: there is no such file. As git does, follow a link to it.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    path = settings.excludes_file
    content = None if path is None else _read_plain(path, LARGEST_RULES + 1)
    if content is not None and len(content) > LARGEST_RULES:
        raise UsageError(f"{path}, git's core.excludesFile, has more than 1 MiB", "write fewer patterns")
    return content or b""


def _read_plain(path: Path, most: int) -> bytes | None:
    """Return the beginning of a file; None: there is no plain file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL is in the path
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}, a file of git's settings: {error.strerror}", "check it") from None
    with open(handle, "rb") as file:
        return file.read(most)


class _ConfigReader:
    """Reads all files of the configuration, in the order in which they count."""

    def __init__(self, environ: Mapping[str, str], repository: Repository | None) -> None:
        self._environ = environ
        self._repository = repository
        self._included = 0
        self._urls: tuple[str, ...] | None = None  # URLs of all remote repositories; None: not read yet

    def read_all(self) -> Iterator[Setting]:
        environ = self._environ
        if environ.get("GIT_CONFIG_NOSYSTEM", "").lower() not in ("1", "true", "yes", "on"):
            yield from self._read_file(Path(environ.get("GIT_CONFIG_SYSTEM") or _SYSTEM), 0)
        for path in self._list_user_files():
            yield from self._read_file(path, 0)
        if self._repository is not None:
            yield from self._read_repository(self._repository)
        count = environ.get("GIT_CONFIG_COUNT", "")
        numbers = range(min(int(count) if re.fullmatch(r"[0-9]{1,6}", count) else 0, _MOST_VARIABLES))
        names = (environ.get(f"GIT_CONFIG_KEY_{index}", "") for index in numbers)
        values = (environ.get(f"GIT_CONFIG_VALUE_{index}", "") for index in numbers)
        variables = [(_lower_key(name), value) for name, value in zip(names, values, strict=True)]
        yield from self._include_all(variables, Path("/"), 0)

    def _list_user_files(self) -> list[Path]:
        if "GIT_CONFIG_GLOBAL" in self._environ:
            return [Path(self._environ["GIT_CONFIG_GLOBAL"])]
        folder = _find_user_folder(self._environ)
        home = self._environ.get("HOME")
        files = [] if folder is None else [folder / "config"]
        return [*files, Path(home, ".gitconfig")] if home else files

    def _read_repository(self, repository: Repository) -> Iterator[Setting]:
        own = list(parse_config(read_text(repository.shared, "config", LARGEST_CONFIG)))
        yield from self._include_all(own, repository.shared / "config", 0)
        if (find_last(own, "extensions.worktreeconfig") or "").lower() in ("true", "yes", "on", "1"):
            more = parse_config(read_text(repository.own, "config.worktree", LARGEST_CONFIG))
            yield from self._include_all(more, repository.own / "config.worktree", 0)

    def _read_file(self, path: Path, depth: int) -> Iterator[Setting]:
        content = _read_plain(path, LARGEST_CONFIG)
        if content is not None:
            yield from self._include_all(parse_config(content.decode("utf-8", "replace")), path, depth)

    def _include_all(self, settings: Iterator[Setting] | list[Setting], path: Path, depth: int) -> Iterator[Setting]:
        """Yield the settings of a file, with those of another file in the place of each include."""
        for key, value in settings:
            section, _, name = key.rpartition(".")
            if name != "path" or not (section == "include" or self._holds(section, path)):
                yield key, value
                continue
            self._included += 1
            inner = _resolve(value, path.parent, self._environ)
            if inner is not None and depth < _DEEPEST and self._included <= _MOST_INCLUDES:
                yield from self._read_file(inner, depth + 1)

    def _holds(self, section: str, path: Path) -> bool:
        """Return True for a section `includeIf "CONDITION"` whose condition is met."""
        kind, _, condition = section.partition(".")
        if kind != "includeif" or self._repository is None:
            return False
        name, _, pattern = condition.partition(":")
        if name == "onbranch":
            head = read_line(self._repository.own, "HEAD")
            branch = head.removeprefix(_BRANCHES)
            return branch != head and _matches_text(_end_pattern(pattern), branch)
        if name == "hasconfig" and pattern.startswith(_REMOTE_URL):
            return any(_matches_text(pattern.removeprefix(_REMOTE_URL), url) for url in self._list_remote_urls())
        return name in ("gitdir", "gitdir/i") and self._is_inside(
            pattern, path, self._repository.own, ignores_case=name.endswith("/i")
        )

    def _is_inside(self, pattern: str, path: Path, folder: Path, *, ignores_case: bool) -> bool:
        """Return True when the pattern of a condition `gitdir`, which the file `path` has, matches a folder."""
        if pattern.startswith("./"):
            pattern = f"{os.path.realpath(path.parent)}/{pattern[2:]}"
        elif pattern.startswith("~/"):
            pattern = f"{self._environ.get('HOME', '')}/{pattern[2:]}"
        elif not pattern.startswith("/"):
            pattern = f"**/{pattern}"
        return _matches_path(_end_pattern(pattern), folder, ignores_case=ignores_case)

    def _list_remote_urls(self) -> tuple[str, ...]:
        """Return the addresses of all remote repositories. As in git, files with the condition `hasconfig` add none."""
        if self._urls is None:
            reader = _ConfigReader(self._environ, self._repository)
            reader._urls = ()
            names = [(key.split("."), value) for key, value in reader.read_all()]
            self._urls = tuple(
                value for name, value in names if len(name) > 2 and (name[0], name[-1]) == ("remote", "url")
            )
        return self._urls


def _lower_key(key: str) -> str:
    """Return a key in lower case, except what is between its first and its last dot."""
    section, dot, tail = key.partition(".")
    inner, mark, name = tail.rpartition(".")
    return f"{section.lower()}{dot}{inner}{mark}{name.lower()}"


def _end_pattern(pattern: str) -> str:
    """Return a pattern of a condition: that of a folder matches what is below it."""
    return f"{pattern}**" if pattern.endswith("/") else pattern


def _matches_text(pattern: str, text: str) -> bool:
    from riseml.files.project.ignore_rules import matches_path

    return matches_path(os.fsencode(pattern), os.fsencode(text))


def _matches_path(pattern: str, folder: Path, *, ignores_case: bool) -> bool:
    from riseml.files.project.ignore_rules import matches_path

    paths = {os.fsencode(folder.absolute()), os.fsencode(os.path.realpath(folder))}
    text = os.fsencode(pattern)
    if ignores_case:
        text = text.lower()
        paths = {path.lower() for path in paths}
    return any(matches_path(text, path) for path in paths)


def _find_user_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder with the user's settings of git: ~/.config/git."""
    if environ.get("XDG_CONFIG_HOME"):
        return Path(environ["XDG_CONFIG_HOME"], "git")
    return Path(environ["HOME"], ".config", "git") if environ.get("HOME") else None


def _resolve(text: str, base: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the path of a setting: `~` is the home folder, and a relative path begins at `base`; None: there is no
    such user."""
    if text == "~" or text.startswith("~/"):
        return Path(environ["HOME"], text[2:]) if environ.get("HOME") else None
    path = os.path.expanduser(text) if text.startswith("~") else text
    return None if path.startswith("~") else base / path
