"""The packages that `pip install riseml` brings, as they are installed here: `python -m scripts.packages`.

It prints `name==version` for each, as `pip` reads it. docs/packages.md has a reason for each; `--write` writes that
page again, with the sizes of the packages that are installed here.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from riseml.base.records import dataclass

ROOT = "riseml"
PAGE = Path(__file__).parents[1] / "docs" / "packages.md"
_ROW = re.compile(r"^\| ([a-z0-9-]+) \| ([a-z0-9, -]+) \| ([\d.]+) \| (\S.*) \|$", re.MULTILINE)
_HEAD = "|---|---|---|---|\n"
_TOTAL = re.compile(r"^(?:TOTAL|\d+ packages, \d+ MB\b.*)$", re.MULTILINE)
_MISSING = "write a reason here"


@dataclass(frozen=True, slots=True)
class PackageRow:
    """A row of the page."""

    name: str
    bringers: str  # the packages that need it, `docker, requests`
    size: str  # MB
    reason: str


def find_packages() -> dict[str, set[str]]:
    """Return the names of all packages that riseml needs, directly or not, each with the packages that bring it."""
    bringers: dict[str, set[str]] = {}
    waiting = [ROOT]
    while waiting:
        package = waiting.pop()
        for name in _list_requirements(package):
            if name not in bringers:
                waiting.append(name)
            bringers.setdefault(name, set()).add(package)
    return bringers


def _list_requirements(package: str) -> list[str]:
    """Return what a package needs in this environment, without its extras."""
    requirements = map(Requirement, metadata.requires(package) or ())
    needed = (
        requirement
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    )
    return [canonicalize_name(requirement.name) for requirement in needed]


def read_rows(page: str) -> list[PackageRow]:
    """Return the rows of the page."""
    return [PackageRow(*match.groups()) for match in _ROW.finditer(page.partition(_HEAD)[2])]


def write_page(page: str) -> str:
    """Return the page with a row for each package that is installed here; the reasons stay."""
    former = {row.name: row for row in read_rows(page)}
    packages = find_packages()
    sizes = {name: _measure(name) for name in packages}
    rows = []
    for name in sorted(packages):
        row = former.get(name)
        # Some packages need others on some versions of Python only, so the page may name more.
        bringers = packages[name] | (set(row.bringers.split(", ")) if row is not None else set())
        reason = row.reason if row is not None else _MISSING
        rows.append(f"| {name} | {', '.join(sorted(bringers))} | {sizes[name]:.1f} | {reason} |")
    total = f"{len(rows)} packages, {sum(sizes.values()):.0f} MB on a disk without compiled Python."
    return _TOTAL.sub(total, page.partition(_HEAD)[0], count=1) + _HEAD + "\n".join(rows) + "\n"


def _measure(name: str) -> float:
    """Return the MB of a package's files, without what Python compiles of them."""
    files = metadata.files(name) or []
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def main() -> None:
    """Print the packages, or write the page."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(write_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    print("\n".join(f"{name}=={metadata.version(name)}" for name in sorted(find_packages())))


if __name__ == "__main__":
    main()
