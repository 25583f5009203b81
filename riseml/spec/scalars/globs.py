"""Patterns of paths: `*.json`, `checkpoints/**`, as in .gitignore without its `!`.

`*`, `?` and `[...]` stand for characters of one name, `**` for any number of folders. A pattern without `/` means a
name in any folder. A pattern that matches a folder matches everything below it.
"""

from __future__ import annotations

import re
from fnmatch import translate

from riseml.base.records import dataclass
from riseml.spec.scalars.texts import BadText, quote_text

_ANY_FOLDERS = "**"
_HINT = "write it as below OUTPUT_DIR: `checkpoints/**`, `*.json`"
_BRACES_HINT = "write a pattern for each: `a.pt`, `b.pt` for `{a,b}.pt`; `?` for a brace of a name"
_ALTERNATIVES = re.compile(r"\{[^{}/]*,[^{}/]*\}")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern that was checked; None among its names stands for any number of folders."""

    names: tuple[re.Pattern[str] | None, ...]

    def matches(self, path: str) -> bool:
        """Return True when the pattern matches a path, or a folder above it."""
        places = self._skip_folders({0})  # in `names`: where each reading of the path so far stands
        for name in path.split("/"):
            after = {place for place in places if place < len(self.names) and self.names[place] is None}
            for place in places:
                expected = self.names[place] if place < len(self.names) else None
                if expected is not None and expected.match(name):
                    after.add(place + 1)
            places = self._skip_folders(after)
            if len(self.names) in places:
                return True
        return False

    def _skip_folders(self, places: set[int]) -> set[int]:
        """Return the places, with the place after each `**`, because `**` may stand for no folder."""
        reached = set(places)
        for place in sorted(places):
            at = place
            while at < len(self.names) and self.names[at] is None:
                at += 1
                reached.add(at)
        return reached


def refuse_alternatives(text: str) -> None:
    """Do nothing for a text without `{a,b}`, which shells read, and patterns would take for the name itself.

    Raises:
        BadText: it has alternatives.
    """
    if _ALTERNATIVES.search(text):
        raise BadText(f"{quote_text(text)} has alternatives in braces, which patterns do not know", _BRACES_HINT)


def parse_glob(text: str, *, anywhere: bool = True) -> PathPattern:
    """Return a pattern.

    Example: `parse_glob("checkpoints/**").matches("checkpoints/a/1.index")` is True.

    Args:
        text: the pattern.
        anywhere: whether a pattern without `/` means a name in any folder.

    Raises:
        BadText: it can mean no path below a folder.
    """
    names = text.removesuffix("/").split("/")
    if any(name in ("", ".", "..") for name in names):
        raise BadText(f"{quote_text(text)} is not a pattern of paths below OUTPUT_DIR", _HINT)
    if anywhere and len(names) == 1 and names[0] != _ANY_FOLDERS:
        names = [_ANY_FOLDERS, *names]
    return PathPattern(tuple(None if name == _ANY_FOLDERS else re.compile(translate(name)) for name in names))
