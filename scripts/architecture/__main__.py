"""`python -m scripts.architecture [--check]`: write the pictures, or say which ones are not up to date."""

from __future__ import annotations

import sys

from scripts.architecture.pictures import DOCS, draw_pictures


def main(arguments: list[str]) -> int:
    """Return 0 when every picture is up to date in the end."""
    code = 0
    for name, text in draw_pictures().items():
        path = DOCS / name
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in arguments:
            print(f"docs/{name} is not up to date: run `.venv/bin/python -m scripts.architecture`")
            code = 1
        else:
            path.write_text(text)
            print(f"wrote docs/{name}")
    return code


sys.exit(main(sys.argv[1:]))
