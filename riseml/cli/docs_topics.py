"""The pages that riseml brings, as topics of `riseml docs`: read from docs/README.md, the list of pages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from riseml.base.errors import NotFound
from riseml.base.records import dataclass

_INDEX = "README.md"
_NEAREST = 3  # topics that the answer to an unknown name has
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_SECTION = re.compile(r"^## (.+)$")
_ROW = re.compile(r"^\| (.+?) \| (.+) \|$")


@dataclass(frozen=True, slots=True)
class DocsTopic:
    """A page."""

    name: str  # as the user types it
    section: str
    summary: str  # what the page is for
    file: Path

    def read(self) -> str:
        """Return the text of the page."""
        return self.file.read_text(encoding="utf-8")


def list_topics() -> tuple[DocsTopic, ...]:
    """Return all topics, in the order of docs/README.md; of several pages with the same name the first counts."""
    topics: dict[str, DocsTopic] = {}
    for topic in read_index(find_docs_folder() / _INDEX):
        topics.setdefault(topic.name, topic)
    return tuple(topics.values())


def find_docs_folder() -> Path:
    """Return the folder of the pages: of the installed package, or of the repository."""
    package = Path(__file__).parents[1]
    packaged = package / "docs"
    return packaged if packaged.is_dir() else package.parent / "docs"


def read_index(index: Path) -> Iterator[DocsTopic]:
    """Yield the topics of a list of pages such as docs/README.md, in its order."""
    section = ""
    for line in index.read_text(encoding="utf-8").splitlines():
        heading = _SECTION.match(line)
        row = _ROW.match(line)
        if heading is not None:
            section = heading[1]
        for _, target in _LINK.findall(row[1]) if row is not None else ():
            file = Path(os.path.normpath(index.parent / target))
            if file.is_file():  # pages for those who change riseml are in its repository alone
                summary = _LINK.sub(r"\1", row[2] if row is not None else "").replace("`", "")
                yield DocsTopic(_name_topic(file), section, summary, file)


def _name_topic(file: Path) -> str:
    return (file.parent.name if file.name == _INDEX else file.stem).lower()


def find_topic(name: str) -> DocsTopic:
    """Return the topic with a name; `docs/stores.md` and `riseml.yml` are names, too.

    Raises:
        NotFound: there is none.
    """
    topics = {topic.name: topic for topic in list_topics()}
    topic_name = name.lower().removeprefix("docs/").removesuffix(".md").replace(".", "-").replace(" ", "-")
    if topic_name in topics:
        return topics[topic_name]
    nearest = _find_nearest(topic_name, topics)
    hint = (
        f"the nearest: {', '.join(nearest)}; `riseml docs` lists all" if nearest else "`riseml docs` lists all topics"
    )
    raise NotFound(f"riseml has no page {name!r}", hint)


def _find_nearest(topic_name: str, topics: Mapping[str, DocsTopic]) -> list[str]:
    """Return the topics whose names are like a word, else those whose pages say it most often."""
    import difflib

    alike = difflib.get_close_matches(topic_name, topics, _NEAREST, 0.6)
    parts = [name for name in topics if len(topic_name) > 1 and topic_name in name and name not in alike]
    return [*alike, *parts][:_NEAREST] or _find_pages_that_say(topic_name, topics.values())


def _find_pages_that_say(topic_name: str, topics: Iterable[DocsTopic]) -> list[str]:
    word = re.compile(rf"\b{re.escape(topic_name)}\b", re.IGNORECASE)
    counts = {topic.name: len(word.findall(topic.read())) for topic in topics if len(topic_name) > 1}
    return sorted((name for name, count in counts.items() if count), key=lambda name: -counts[name])[:_NEAREST]


def find_site_page(topic: DocsTopic | None) -> Path:
    """Return the page of a topic on the site, or the first page of the site.

    Raises:
        NotFound: this riseml has no site, or no such page on it.
    """
    package = Path(__file__).parents[1]
    packaged = package / "docs_site"
    site = packaged if packaged.is_dir() else package.parent / "build" / "site"
    page = site / "index.html"
    if topic is not None:
        place = Path(os.path.relpath(topic.file, find_docs_folder().parent))
        page = site / place.with_name("index.html" if place.name == _INDEX else f"{place.stem}.html")
    if not page.is_file():
        hint = "`riseml docs TOPIC` shows a page here; `make docs` in the repository builds the site"
        raise NotFound("this riseml was installed without the site of its pages", hint)
    return page
