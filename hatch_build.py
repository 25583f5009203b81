"""What a wheel has beside the code: the pages that `riseml docs` shows, and the site of `make docs` where it was built.

A wheel keeps the places of the repository below `riseml/`, so that the links between pages lead to the same files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SITE = Path("build/site")
_ROOT_PAGES = ("CHANGELOG.md", "SECURITY.md")


class RisemlBuildHook(BuildHookInterface[Any]):
    """Adds the files that no rule of pyproject.toml can name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, unless the package stays in its repository, where riseml reads them."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        pages = [*(root / "docs").rglob("*.md"), *(root / name for name in _ROOT_PAGES)]
        included: dict[str, str] = build_data["force_include"]
        included.update({str(page): f"riseml/{page.relative_to(root)}" for page in pages})
        if (root / _SITE).is_dir():
            included[str(root / _SITE)] = "riseml/docs_site"
