"""The pages that an agent reads: the skill, the pages of `riseml docs`, and the schemas."""

from __future__ import annotations

from pathlib import Path

from riseml.base.records import dataclass
from riseml.cli.docs_topics import find_topic, list_topics

_SKILL = Path("skills/riseml/SKILL.md")


@dataclass(frozen=True, slots=True)
class AgentPage:
    """A page."""

    name: str  # `docs/search`, `schemas/riseml.schema.json`
    summary: str  # what it is for
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
    """Return all pages: the skill first, then those of `riseml docs`, then schemas."""
    folder = _find_folder()
    pages = [AgentPage("skill", "how to write riseml.yml and read failures", folder / _SKILL, "text/markdown")]
    pages += [AgentPage(f"docs/{each.name}", each.summary, each.file, "text/markdown") for each in list_topics()]
    for path in sorted((folder / "schemas").glob("*.json")):
        summary = f"schema of {path.name.split('.')[0]}"
        pages.append(AgentPage(f"schemas/{path.name}", summary, path, "application/json"))
    return pages


def find_page(name: str) -> AgentPage:
    """Return the page of a name: `skill`, `search`, `docs/search.md`, `schemas/riseml.schema.json`.

    Raises:
        NotFound: there is none.
    """
    plain = name.removeprefix("riseml://")
    pages = {page.name: page for page in list_pages()}
    return pages[plain] if plain in pages else pages[f"docs/{find_topic(plain).name}"]


def _find_folder() -> Path:
    """Return the folder that has the skill and the schemas: of the installed package, or the repository."""
    package = Path(__file__).parents[1]
    return package if (package / _SKILL).is_file() else package.parent
