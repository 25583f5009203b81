"""`python -m scripts.docs_site [FOLDER]`: build the site, by default in build/site."""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.docs_site.building import SiteError, build_site

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """Build the site; return the exit code."""
    target = Path(arguments[0]) if arguments else ROOT / "build" / "site"
    try:
        count = build_site(ROOT, target)
    except SiteError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    print(f"docs: {count} pages in {target / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
