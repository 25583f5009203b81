"""Ignore rules as git reads them, from `.gitignore` and `.risemlignore` in every folder.

The last match in the deepest file decides. Patterns and paths are bytes, because file names are bytes. The matcher
follows git's own (wildmatch.c); the tests compare it with `git check-ignore` on thousands of rules and paths.

Written by hand for a measured reason. Differences from git are silent: a file that is excluded by mistake is missing in
the container, and a file that is sent by mistake may be a secret. pathspec 1.1.1 differs from git in 36 of the 150
random rule files of the tests, and raises an error for 26 of these 36. It decides about files and not about the folders
above them: applied to folders, it excludes every folder under `*`, `!*/`, `!*.py`; applied to files only, it sends
`secrets/a.json` under `secrets`, `!*.json`, and riseml would have to walk every excluded folder.

A pattern becomes a regular expression whose stars match as little as possible and never backtrack (`(?>...)`), except
the last star of a path segment, whose end is fixed. So `*a*a*a*a*ab` takes no more than one search for each star.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

from riseml.base.errors import UsageError
from riseml.base.records import dataclass

RISEML_IGNORE = b".risemlignore"
IGNORE_FILES = (b".gitignore", RISEML_IGNORE)

_ANY = frozenset(range(256)) - {ord("/")}
_CLASSES = {
    b"alnum": rb"[A-Za-z0-9]",
    b"alpha": rb"[A-Za-z]",
    b"blank": rb"[ \t]",
    b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]",
    b"graph": rb"[\x21-\x7e]",
    b"lower": rb"[a-z]",
    b"print": rb"[\x20-\x7e]",
    b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t-\r]",
    b"upper": rb"[A-Z]",
    b"xdigit": rb"[0-9A-Fa-f]",
}
"""An expression for one byte of each class, such as `[:alpha:]`."""


class Wildcard(Enum):
    """What a part of a pattern stands for, when it is not one byte."""

    STAR = "*"  # any bytes of one path segment
    FOLDERS = "**/"  # any number of whole folders, each with its `/`
    REST = "**"  # everything below a folder; always the last part


JobDuty = bytes | Wildcard
"""A part of a pattern: an expression for exactly one byte, or a wildcard."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file."""

    matches: Callable[[bytes], object]  # takes a path below the folder of the ignore file
    folders_only: bool
    ignores: bool  # False for a line that begins with `!`


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one ignore file."""

    base: bytes  # its folder
    rules: tuple[Rule, ...]  # the last line first
    matches_any: Callable[[bytes], object]  # one quick test for all rules
    is_riseml: bool = False  # True: `.risemlignore`, whose rules hold for files that git tracks, too


def is_ignored(files: tuple[RuleFile, ...], path: bytes, *, is_folder: bool) -> bool:
    """Return what the ignore files (outermost first) say about `path`. Its folder must not be ignored itself.

    Example:
        is_ignored(tuple(read_rules(b"/home/paul/toaster", b"")), b"data/x.bin", is_folder=False)
    """
    for file in reversed(files):
        name = path[len(file.base) + 1 :] if file.base else path
        if not file.matches_any(name):
            continue
        for rule in file.rules:
            if (is_folder or not rule.folders_only) and rule.matches(name):
                return rule.ignores
    return False


def read_rules(folder: bytes, base: bytes) -> Iterator[RuleFile]:
    """Yield the ignore files of `folder`; paths will name this folder `base`.

    Raises:
        UsageError: an ignore file cannot be read.
    """
    for name in IGNORE_FILES:
        path = os.path.join(folder, name)
        try:
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue  # git does not follow a link to an ignore file
            with open(path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            continue
        except OSError as error:
            path_text = os.fsencode(path).decode("utf-8", "backslashreplace")
            raise UsageError(f"cannot read {path_text}: {error.strerror}", "check its permissions") from None
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if (rules := parse_rules(lines, base, is_riseml=name == RISEML_IGNORE)) is not None:
            yield rules


def matches_path(pattern: bytes, path: bytes) -> bool:
    """Return True when a pattern of git matches a whole path, name of a branch, or address."""
    parts = _parse_pattern(pattern, crosses_folders=True)
    return parts is not None and re.fullmatch(_join_parts(parts), path, re.DOTALL) is not None


def parse_rules(lines: Iterable[bytes], base: bytes = b"", *, is_riseml: bool = False) -> RuleFile | None:
    """Return the rules of one ignore file; None when it has none. `is_riseml`: it is a `.risemlignore`."""
    parsed = [rule for line in lines if (rule := _parse_line(line)) is not None]
    if not parsed:
        return None
    rules = tuple(
        Rule(re.compile(pattern, re.DOTALL).fullmatch, folders_only, ignores)
        for pattern, folders_only, ignores in reversed(parsed)
    )
    matches_any = re.compile(b"|".join(pattern for pattern, _, _ in parsed), re.DOTALL).fullmatch
    return RuleFile(base, rules, matches_any, is_riseml)


def _parse_line(line: bytes) -> tuple[bytes, bool, bool] | None:
    """Return the expression of one line, whether it is for folders only, and whether it ignores."""
    line = _strip_spaces(line.removesuffix(b"\r"))
    if not line or line.startswith(b"#"):
        return None
    ignores = not line.startswith(b"!")
    line = line if ignores else line[1:]
    folders_only = line.endswith(b"/")
    line = line[:-1] if folders_only else line
    anchored = b"/" in line
    line = line.removeprefix(b"/")
    if not line:
        return None
    # git compares the part before the first wildcard separately, so `a**/b` is `a` followed by `**/b`.
    plain = re.match(rb"[^*?\[\\]*", line)
    prefix = plain[0] if plain is not None else b""
    parts = _parse_pattern(line[len(prefix) :], crosses_folders=anchored)
    if parts is None:
        return None
    literal = [re.escape(prefix[at : at + 1]) for at in range(len(prefix))]
    return _join_parts([*([] if anchored else [Wildcard.FOLDERS]), *literal, *parts]), folders_only, ignores


def _strip_spaces(line: bytes) -> bytes:
    """Return the line without the spaces at its end; a backslash keeps one."""
    stripped = line.rstrip(b" ")
    backslashes = len(stripped) - len(stripped.rstrip(b"\\"))
    return stripped + b" " if backslashes % 2 and len(stripped) < len(line) else stripped


def _parse_pattern(pattern: bytes, *, crosses_folders: bool) -> list[JobDuty] | None:
    """Return the parts of a wildmatch pattern; None when it cannot match anything.

    `crosses_folders`: the pattern is for paths, where `**` stands for folders. Otherwise it is for names.
    """
    parts: list[JobDuty] = []
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        if char == b"*":
            wildcards, at = _parse_stars(pattern, at, crosses_folders=crosses_folders)
            parts += wildcards
            continue
        if char == b"?":
            piece = b"[^/]"
            at += 1
        elif char == b"[":
            bracket = _parse_bracket(pattern, at + 1)
            if bracket is None:
                return None
            piece = _match_one_of(bracket[0])
            at = bracket[1]
        elif char == b"\\":
            if at + 1 == len(pattern):
                return None
            piece = re.escape(pattern[at + 1 : at + 2])
            at += 2
        else:
            piece = re.escape(char)
            at += 1
        parts.append(piece)
    return parts


def _parse_stars(pattern: bytes, start: int, *, crosses_folders: bool) -> tuple[list[JobDuty], int]:
    end = start
    while pattern[end : end + 1] == b"*":
        end += 1
    opens = crosses_folders and (start == 0 or pattern[start - 1 : start] == b"/")
    after = pattern[end : end + 2]
    if end - start > 1 and opens:
        if after == b"":
            return [Wildcard.REST], end
        if after[:1] == b"/":
            return [Wildcard.FOLDERS], end + 1
        if after == b"\\/":  # unlike for `**/`, git requires one folder at least
            return [Wildcard.STAR, b"/", Wildcard.FOLDERS], end + 2
    return [Wildcard.STAR], end


def _join_parts(parts: list[JobDuty]) -> bytes:
    """Return the expression of a whole pattern.

    A star that another star follows in the same segment matches as little as possible and keeps that match: when a
    later place leads to a match, so does the first place. The same holds for `**/` before another `**/`.
    """
    groups = _split_parts(parts, Wildcard.FOLDERS)
    joined = [_join_segments(groups[0])]
    for group in groups[1:-1]:
        joined.append(b"(?>(?:[^/]*/)*?" + _join_segments(group) + b")")
    if len(groups) > 1:
        joined.append(b"(?:.*/)?" + _join_segments(groups[-1]))
    return b"".join(joined)


def _join_segments(parts: list[JobDuty]) -> bytes:
    """Return the expression of parts that have no `**/` among them."""
    return b"/".join(_join_stars(segment) for segment in _split_parts(parts, b"/"))


def _join_stars(parts: list[JobDuty]) -> bytes:
    """Return the expression of the parts of one path segment."""
    first, *tail = _split_parts(parts, Wildcard.STAR)
    joined = [_join_bytes(first)]
    for piece in tail[:-1]:
        joined.append(b"(?>[^/]*?" + _join_bytes(piece) + b")")
    if tail:
        joined.append(b"[^/]*" + _join_bytes(tail[-1]))
    return b"".join(joined)


def _join_bytes(parts: list[JobDuty]) -> bytes:
    return b"".join(b".*" if isinstance(part, Wildcard) else part for part in parts)  # only REST is left


def _split_parts(parts: list[JobDuty], separator: JobDuty) -> list[list[JobDuty]]:
    groups: list[list[JobDuty]] = [[]]
    for part in parts:
        if part == separator:
            groups.append([])
        else:
            groups[-1].append(part)
    return groups


def _parse_bracket(pattern: bytes, at: int) -> tuple[frozenset[int], int] | None:
    """Return the bytes that a `[...]` matches, and the position after it. `at` is after the `[`. None: malformed."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    previous: int | None = None
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        member = _parse_member(pattern, at, previous)
        if member is None:
            return None
        fresh, previous, at = member
        members |= fresh
    return (_ANY - members if negated else _ANY & members), at + 1


def _parse_member(pattern: bytes, at: int, previous: int | None) -> tuple[frozenset[int], int | None, int] | None:
    """Return one member of a bracket: its bytes, the start of a range that a `-` continues, and the next position."""
    char = pattern[at : at + 1]
    if char == b"[" and pattern[at + 1 : at + 2] == b":":
        end = pattern.find(b"]", at + 2)
        if end < 0:
            return None
        if end > at + 2 and pattern[end - 1 : end] == b":":
            characters = _CLASSES.get(pattern[at + 2 : end - 1])
            return None if characters is None else (_list_bytes(characters), None, end + 1)
    is_range = char == b"-" and previous is not None and pattern[at + 1 : at + 2] not in (b"", b"]")
    at += is_range
    at += pattern[at : at + 1] == b"\\"
    if at >= len(pattern):
        return None
    code = pattern[at]
    if is_range and previous is not None:
        return frozenset(range(previous, code + 1)), None, at + 1
    return frozenset({code}), code, at + 1


def _list_bytes(expression: bytes) -> frozenset[int]:
    """Return the bytes that an expression for one byte matches."""
    return frozenset(code for code in range(256) if re.match(expression, bytes([code])))


def _match_one_of(members: frozenset[int]) -> bytes:
    if not members:
        return b"(?!)"
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(members)) + b"]"
