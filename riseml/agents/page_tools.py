"""The tool that reads pages of documentation: many programs show an agent tools, and no resources."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from riseml import wire
from riseml.agents.answers import Bounds, shorten_answer
from riseml.agents.pages import AgentPage, find_page, list_pages
from riseml.base.amounts import count_noun
from riseml.base.errors import NotFound, UsageError

_PIECE = 16_000  # characters of one answer
_MOST_LINES = 80  # that a search shows
_LONGEST_LINE = 300  # characters


class PageTools:
    """The tools about pages."""

    def docs(
        self,
        page: Annotated[str | None, Field(description="such as riseml-yml, search or skill; null: list all")] = None,
        find: Annotated[str, Field(description="only lines with this text, of the page or of all pages")] = "",
        offset: Annotated[int, Field(ge=0, description="where a long page goes on: `next` of the last answer")] = 0,
    ) -> wire.AgentDocs:
        """Read the documentation: list its pages, read one, or find lines with a text. Begin with the page `skill`."""
        if find and offset:
            raise UsageError("find takes no offset", "leave one of them out")
        chosen = list_pages() if page is None else [find_page(page)]
        following: int | None = None
        if find:
            text = _search_pages(chosen, find)
            summary = f"Lines with {find!r}."
        elif page is None:
            text = "\n".join(f"{each.name}: {each.summary}" for each in chosen)
            summary = f"{count_noun(len(chosen), 'page')}."
        else:
            whole = chosen[0].read()
            text = whole[offset : offset + _PIECE]
            is_last = offset + _PIECE >= len(whole)
            following = None if is_last else offset + _PIECE
            summary = f"{chosen[0].name}." if is_last else f"{chosen[0].name}: it goes on at offset {following}."
        answer: wire.AgentDocs = {"summary": summary, "cut": [], "text": text, "next": following}
        return shorten_answer(answer, Bounds(characters=_PIECE))


def _search_pages(pages: list[AgentPage], words: str) -> str:
    """Return the lines of pages that have a text, each with its page and its heading.

    Raises:
        NotFound: no line has it.
    """
    hits: list[str] = []
    for page in pages:
        heading = ""
        for line in page.read().splitlines():
            heading = line.strip("# ") if line.startswith("#") else heading
            if words.casefold() in line.casefold():
                hits.append(f"{page.name} ({heading}): {line.strip()[:_LONGEST_LINE]}")
    if not hits:
        raise NotFound(f"no line has {words[:60]!r}", "use fewer words, or another page")
    more = len(hits) - _MOST_LINES
    return "\n".join(hits[:_MOST_LINES] + ([f"... and {more} more lines"] if more > 0 else []))
