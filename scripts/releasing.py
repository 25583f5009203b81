"""`scripts/release`: check, build and tag one version. Nothing leaves this machine.

The version is written in pyproject.toml and riseml/__init__.py, and CHANGELOG.md has a section of it with a date. The
tag comes last: a build that fails leaves none.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.version import InvalidVersion, Version
from uv import find_uv_bin

from scripts.docs_site.building import SiteError, build_site

_CHECK = "--check"
_USAGE = "usage: scripts/release [--check] VERSION"
_SECTION = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def find_problems(root: Path, version: str) -> Iterator[str]:
    """Yield what keeps a repository from being released as a version."""
    try:
        normal = str(Version(version))
    except InvalidVersion:
        yield f"{version!r} is no version (PEP 440): write one such as 2.0.0"
        return
    if normal != version:
        yield f"{version!r} is written {normal!r}"
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    package = re.search(
        r'^__version__ = "(.+)"$', (root / "riseml/__init__.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    for file, written in (("pyproject.toml", project), ("riseml/__init__.py", package[1] if package else "none")):
        if written != version:
            yield f"{file} has the version {written}: write {version} there"
    yield from find_changelog_problems((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if _ask_git(root, "status", "--porcelain"):
        yield "files differ from the last commit: commit them, or put them away"
    if _ask_git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists already"


def find_changelog_problems(text: str, version: str) -> Iterator[str]:
    """Yield what is wrong with the section of a version in CHANGELOG.md."""
    sections = {match[1]: match for match in _SECTION.finditer(text)}
    section = sections.get(version)
    if section is None:
        yield f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`: move what is below [Unreleased] there"
        return
    if section[2] is None:
        yield f"the section [{version}] of CHANGELOG.md has no date"
    body = text[section.end() :].partition("\n## ")[0]
    if not re.search(r"^- ", body, re.MULTILINE):
        yield f"the section [{version}] of CHANGELOG.md says nothing that changed"
    unreleased = sections.get("Unreleased")
    if unreleased is not None and re.search(r"^- ", text[unreleased.end() : section.start()], re.MULTILINE):
        yield f"CHANGELOG.md has changes below [Unreleased]: move them to [{version}]"


def build_release(root: Path, version: str) -> list[Path]:
    """Build the site and the packages of a repository; return the packages, in its folder dist/."""
    build_site(root, root / "build" / "site")
    dist = root / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    subprocess.run([find_uv_bin(), "build", "--quiet", "--out-dir", dist, root], check=True)
    return sorted(path for path in dist.iterdir() if version in path.name)


def main(arguments: list[str], root: Path) -> int:
    """Check a version, and release it; return the exit code."""
    checks = arguments[:1] == [_CHECK]
    words = arguments[checks:]
    if len(words) != 1 or words[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    version = words[0]
    problems = list(find_problems(root, version))
    for problem in problems:
        print(f"release: {problem}", file=sys.stderr)
    if problems or checks:
        return 1 if problems else 0
    try:
        packages = build_release(root, version)
    except (SiteError, subprocess.CalledProcessError) as error:
        print(f"release: nothing was tagged: {error}", file=sys.stderr)
        return 1
    _ask_git(root, "tag", "--annotate", "--message", f"riseml {version}", f"v{version}")
    print("\n".join(f"{package.stat().st_size / 1e6:.1f} MB  {package}" for package in packages))
    print(f"release: v{version} is tagged here, and published nowhere. To publish it:")
    print(f"  git push origin v{version}\n  uv publish {' '.join(str(path.relative_to(root)) for path in packages)}")
    return 0


def _ask_git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parents[1]))
