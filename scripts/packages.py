"""The packages that `pip install riseml` brings, as they are installed here: `python -m scripts.packages`.

It prints `name==version` for each, as `pip` reads it. docs/security.md has a reason for each, and
tests/unit/test_packages.py compares the two.
"""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "riseml"


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


def main() -> None:
    print("\n".join(f"{name}=={metadata.version(name)}" for name in sorted(find_packages())))


if __name__ == "__main__":
    main()
