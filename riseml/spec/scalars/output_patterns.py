"""The patterns of `outputs`: `runs`, `*.pt`, `~/results/*.csv`, `/workspace/out`."""

from __future__ import annotations

import enum

from riseml.base.records import dataclass
from riseml.spec.scalars.globs import PathPattern, parse_glob
from riseml.spec.scalars.texts import BadText, quote_text

_HINT = "write it as below the working folder: `runs`, `*.pt`; or begin it with ~/ or /"
_GLOB = frozenset("*?[")
_SYSTEM = frozenset(
    {
        "bin",
        "boot",
        "data",
        "dev",
        "etc",
        "inputs",
        "lib",
        "lib64",
        "output",
        "outputs",
        "proc",
        "run",
        "sbin",
        "sys",
        "usr",
    }
)
"""Folders below / of the system, or that riseml mounts."""


class PatternPlace(enum.Enum):
    """The folder that a pattern begins in."""

    FOLDER = "the working folder"
    HOME = "the home folder"
    ROOT = "/"


@dataclass(frozen=True, slots=True)
class OutputPattern:
    """One pattern of `outputs`, checked."""

    text: str  # as written
    place: PatternPlace
    first: str  # the path up to the first name with `*`, `?` or `[`, below `place`; empty: the place itself
    pattern: PathPattern

    @property
    def is_below_folder(self) -> bool:
        """True when the pattern means files of the working folder."""
        return self.place is PatternPlace.FOLDER

    def matches(self, path: str) -> bool:
        """Return True for a path below `place` that the pattern means, or that is in a folder that it means."""
        return self.pattern.matches(path)


def parse_output_pattern(text: str) -> OutputPattern:
    """Return a pattern.

    Example: `parse_output_pattern("runs").matches("runs/a/events")` is True.

    Raises:
        BadText: it can mean no file, or means too much.
    """
    if "{{" in text or "$" in text:
        raise BadText(f"{quote_text(text)} is not filled: a pattern has no variables and no parameters", _HINT)
    place, below = _split_place(text)
    if "\0" in below or "\n" in below:
        raise BadText(f"{quote_text(text)} is not a pattern of paths", _HINT)
    try:
        pattern = parse_glob(below, anywhere=place is PatternPlace.FOLDER)
    except BadText:
        raise BadText(f"{quote_text(text)} is not a pattern of paths", _HINT) from None
    names = below.removesuffix("/").split("/")
    literal = next((at for at, name in enumerate(names) if _GLOB & set(name)), len(names))
    if place is not PatternPlace.FOLDER and not literal:
        hint = "name a folder first: `~/results/*.csv`, `/workspace/out`"
        raise BadText(f"{quote_text(text)} could mean every file of {place.value}", hint)
    if place is PatternPlace.ROOT and names[0] in _SYSTEM:
        raise BadText(
            f"{quote_text(text)} is in /{names[0]}, which has no outputs", "name the folder of your own files"
        )
    return OutputPattern(text, place, "/".join(names[:literal]), pattern)


def _split_place(text: str) -> tuple[PatternPlace, str]:
    if text.startswith("~/"):
        return PatternPlace.HOME, text[2:]
    if text in (".", "./"):
        return PatternPlace.FOLDER, "**"
    if text.startswith("/"):
        return PatternPlace.ROOT, text[1:]
    return PatternPlace.FOLDER, text.removeprefix("./")
