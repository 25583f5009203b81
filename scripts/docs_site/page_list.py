"""Which pages the site has, and in which section: read from docs/README.md."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from riseml.base.records import dataclass

INDEX = Path("docs/README.md")
HOME = Path("README.md")
_DECISIONS = Path("docs/decisions")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FOREIGN = re.compile(r"[a-z]+:")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of docs/README.md with the pages below it."""

    title: str
    pages: tuple[Path, ...]  # from the root of the repository


def read_sections(root: Path) -> tuple[Section, ...]:
    """Return the sections of docs/README.md. The page of decisions is followed by every decision."""
    parts = re.split(r"^## (.+)$", (root / INDEX).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    sections = zip(parts[::2], parts[1::2], strict=True)
    return tuple(Section(title, tuple(_list_pages(root, text))) for title, text in sections)


def _list_pages(root: Path, text: str) -> Iterator[Path]:
    for row in re.findall(r"^\| (.+?) \|", text, flags=re.MULTILINE):
        for target in find_targets(INDEX, row):
            yield target
            if target.parent == _DECISIONS:
                decisions = sorted((root / _DECISIONS).glob("*.md"))
                yield from (page.relative_to(root) for page in decisions if page.name != target.name)


def find_targets(page: Path, text: str) -> Iterator[Path]:
    """Yield the files of the repository that a page links to or shows, from the root of the repository."""
    for link in _LINK.findall(_without_code(text)):
        target = link.partition("#")[0]
        if target and not _FOREIGN.match(target):
            yield Path(os.path.normpath(page.parent / target))


def _without_code(text: str) -> str:
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`", text)
