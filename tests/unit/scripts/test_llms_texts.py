"""llms.txt and llms-full.txt have every page of the site."""

from __future__ import annotations

import re

from scripts.docs_site.__main__ import ROOT
from scripts.docs_site.llms_texts import write_llms_index, write_llms_pages
from scripts.docs_site.page_list import read_sections


def test_the_index_has_a_line_for_each_page_of_the_list() -> None:
    text = write_llms_index(ROOT)
    assert text.startswith("# riseml\n\n> riseml runs distributed training on Docker hosts you own: ")
    pages = re.findall(r"^- \[[\w-]+\]\(([\w./-]+)\): \S", text, re.MULTILINE)
    assert {"docs/riseml-yml.html", "docs/agents.html", "docs/decisions/index.html", "CHANGELOG.html"} <= set(pages)
    listed = {page for section in read_sections(ROOT) for page in section.pages if page.parent.name != "decisions"}
    assert len(pages) == len(listed) + 1  # of the decisions their list alone
    assert text.rpartition("## ")[2].startswith("Optional\n")


def test_the_whole_text_has_each_page_once() -> None:
    sections = read_sections(ROOT)
    text = write_llms_pages(ROOT, sections)
    for page in {page for section in sections for page in section.pages}:
        assert text.count(f"<!-- {page} -->\n") == 1
        assert (ROOT / page).read_text().strip() in text
