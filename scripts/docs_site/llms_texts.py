"""llms.txt and llms-full.txt of the site: its pages for programs that read text (https://llmstxt.org).

llms.txt has the list of docs/README.md, llms-full.txt the text of each page in that order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from riseml.cli.docs_topics import DocsTopic, read_index
from scripts.docs_site.page_list import HOME, INDEX, Section

INDEX_NAME = "llms.txt"
FULL_NAME = "llms-full.txt"

_OPTIONAL = "Change riseml"  # the section that users of riseml may leave out
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n+", re.MULTILINE)


def write_llms_texts(root: Path, site: Path, sections: Sequence[Section]) -> None:
    """Write both files into the folder of the site."""
    (site / INDEX_NAME).write_text(write_llms_index(root), encoding="utf-8")
    (site / FULL_NAME).write_text(write_llms_pages(root, sections), encoding="utf-8")


def write_llms_index(root: Path) -> str:
    """Return the list of pages, with the addresses of the site's pages."""
    title, _, text = (root / HOME).read_text(encoding="utf-8").partition("\n")
    summary = " ".join(_PICTURE.sub("", text).strip().partition("\n\n")[0].split())
    lines = [title, "", f"> {summary}", "", f"The text of all pages is in [{FULL_NAME}]({FULL_NAME}).", ""]
    topics: dict[str, list[DocsTopic]] = {}
    for topic in read_index(root / INDEX):
        topics.setdefault("Optional" if topic.section == _OPTIONAL else topic.section, []).append(topic)
    for section in sorted(topics, key=lambda name: name == "Optional"):
        rows = [f"- [{topic.name}]({_name_page(root, topic.file)}): {topic.summary}" for topic in topics[section]]
        lines += [f"## {section}", "", *rows, ""]
    return "\n".join(lines)


def write_llms_pages(root: Path, sections: Sequence[Section]) -> str:
    """Return the text of each page, behind a line with its path."""
    pages = dict.fromkeys([HOME, *(page for section in sections for page in section.pages)])
    texts = [f"<!-- {page} -->\n\n{(root / page).read_text(encoding='utf-8').strip()}\n" for page in pages]
    return "\n".join(texts)


def _name_page(root: Path, file: Path) -> str:
    """Return the address of a page on the site."""
    place = file.relative_to(root)
    return str(place.with_name("index.html") if place.name == INDEX.name else place.with_suffix(".html"))
