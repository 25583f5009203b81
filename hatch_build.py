"""What a package has beside the code: the pages of `riseml docs`, the site of `make docs`, and the commit.

A wheel keeps the places of the repository below `riseml/`, so that the links between pages lead to the same files. It
has the site where `make docs` has built it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SITE = Path("build/site")
_COMMIT = "build/commit"  # its place in an sdist; in a wheel it is riseml/commit
_ROOT_PAGES = ("CHANGELOG.md", "SECURITY.md")


class RisemlBuildHook(BuildHookInterface[Any]):
    """Adds the files that no rule of pyproject.toml can name."""

    _folder: tempfile.TemporaryDirectory[str] | None = None  # of the file with the commit

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, unless the package stays in its repository, where riseml reads them."""
        if version == "editable":
            return
        root = Path(self.root)
        included: dict[str, str] = build_data["force_include"]
        is_wheel = self.target_name == "wheel"
        if commit := _find_commit(root):
            self._folder = tempfile.TemporaryDirectory()  # the repository may be read-only
            file = Path(self._folder.name, "commit")
            file.write_text(commit + "\n", encoding="utf-8")
            included[str(file)] = "riseml/commit" if is_wheel else _COMMIT
        if is_wheel:
            pages = [*(root / "docs").rglob("*.md"), *(root / name for name in _ROOT_PAGES)]
            included.update({str(page): f"riseml/{page.relative_to(root)}" for page in pages})
            if (root / _SITE).is_dir():
                included[str(root / _SITE)] = "riseml/docs_site"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file that the package has now."""
        if self._folder is not None:
            self._folder.cleanup()


def _find_commit(root: Path) -> str:
    """Return the commit of a repository, of an sdist, or of the variable RISEML_COMMIT; empty where none is known.

    A `+` says that files of the repository differ from the commit.
    """
    if (root / ".git").exists():
        commit = _ask_git(root, "rev-parse", "--short=12", "HEAD")
        changed = _ask_git(root, "status", "--porcelain", "--untracked-files=no")
        return f"{commit}+" if commit and changed else commit
    if (root / _COMMIT).is_file():
        return (root / _COMMIT).read_text(encoding="utf-8").strip()
    return os.environ.get("RISEML_COMMIT", "")


def _ask_git(root: Path, *words: str) -> str:
    try:
        answer = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
