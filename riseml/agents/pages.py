"""The pages that an agent reads: documentation and schemas of riseml, from the package or from the repository."""

from __future__ import annotations

from pathlib import Path

from riseml.base.errors import NotFound
from riseml.base.records import dataclass


@dataclass(frozen=True, slots=True)
class AgentPage:
    """A page."""

    name: str  # `docs/search`, `schemas/riseml.schema.json`
    title: str
    path: Path
    kind: str  # its media type

    @property
    def address(self) -> str:
        """Its address as a resource: `riseml://docs/search`."""
        return f"riseml://{self.name}"

    def read(self) -> str:
        """Return its text."""
        return self.path.read_text(encoding="utf-8")


def list_pages() -> list[AgentPage]:
    """Return all pages: the skill first, then documentation by name, then schemas."""
    pages = [
        AgentPage("skill", "How to write riseml.yml and read failures", path, "text/markdown")
        for path in _list_files("skills", "riseml/SKILL.md")
    ]
    for path in _list_files("docs", "*.md"):
        with path.open(encoding="utf-8") as file:
            title = file.readline().strip("# \n")
        pages.append(AgentPage(f"docs/{path.stem}", title, path, "text/markdown"))
    for path in _list_files("schemas", "*.json"):
        pages.append(
            AgentPage(f"schemas/{path.name}", f"Schema of {path.name.split('.')[0]}", path, "application/json")
        )
    return pages


def find_page(name: str) -> AgentPage:
    """Return the page of a name.

    Raises:
        NotFound: there is none.
    """
    pages = {page.name: page for page in list_pages()}
    page = pages.get(name.removeprefix("riseml://").removesuffix(".md")) or pages.get(
        f"docs/{name.removesuffix('.md')}"
    )
    if page is None:
        raise NotFound(f"there is no page {name[:60]!r}", "without a page, `docs` lists all of them")
    return page


def _list_files(folder: str, pattern: str) -> list[Path]:
    """Return files of a folder that the wheel carries, and that is at the top of the repository."""
    package, repository = Path(__file__).parents[1:3]
    packaged = package / folder
    return sorted((packaged if packaged.is_dir() else repository / folder).glob(pattern))
