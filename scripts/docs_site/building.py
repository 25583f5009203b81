"""Build the site: copy its pages and what they show into a folder, and let Zensical make HTML of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from scripts.docs_site.llms_texts import write_llms_texts
from scripts.docs_site.page_list import HOME, INDEX, Section, find_targets, read_sections

_PAGES = "pages"
_SITE = "site"
_SHIM_ADDRESS = "https://unpkg.com/iframe-worker/shim"  # what Zensical's pages load, so that search works from a disk
_SHIM = Path(__file__).with_name("iframe-worker.js")
_SHIM_PLACE = Path("assets/javascripts") / _SHIM.name
_FEATURES = (
    "content.code.copy",
    "navigation.indexes",
    "navigation.prune",  # a page has the list of its own section alone: half the size
    "navigation.tabs",
    "navigation.top",
    "search.highlight",
    "toc.follow",
)


class SiteError(Exception):
    """The site cannot be built: its message says which page is wrong."""


def build_site(root: Path, target: Path) -> int:
    """Build the site of a repository in the folder `target`, which is replaced; return how many pages it has.

    Raises:
        SiteError: a link leads nowhere, or a page is in no section.
    """
    sections = read_sections(root)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".site-") as name:
        work = Path(name)
        count = _copy_pages(root, work / _PAGES, sections)
        config = work / "mkdocs.yml"
        config.write_text(yaml.safe_dump(_make_config(sections), sort_keys=False), encoding="utf-8")
        _run_zensical(config)
        _serve_shim(work / _SITE)
        write_llms_texts(root, work / _SITE, sections)
        shutil.rmtree(target, ignore_errors=True)
        (work / _SITE).rename(target)
    return count


def _copy_pages(root: Path, folder: Path, sections: Sequence[Section]) -> int:
    """Copy the listed pages and the files that they link to, each to its place in the repository; return the number of
    pages."""
    listed = [HOME, INDEX, *(page for section in sections for page in section.pages)]
    unlisted = {page.relative_to(root) for page in (root / "docs").rglob("*.md")} - set(listed)
    if unlisted:
        names = ", ".join(sorted(map(str, unlisted)))
        raise SiteError(f"no section of {INDEX} lists {names}: add a row there")
    for page in listed:
        _copy(root, folder, page)
        for file in find_targets(page, (root / page).read_text(encoding="utf-8")):
            _check_target(root, page, file, listed)
            _copy(root, folder, file)
    return len(set(listed))


def _check_target(root: Path, page: Path, target: Path, listed: Sequence[Path]) -> None:
    if target.parts[:1] == ("..",) or not (root / target).exists():
        raise SiteError(f"{page} links to {target}, which does not exist")
    if (root / target).is_dir():
        raise SiteError(f"{page} links to the folder {target}: a site shows files, so link to a file in it")
    if target.suffix == ".md" and target not in listed:
        raise SiteError(f"{page} links to {target}, which no section of {INDEX} lists: add a row there")


def _copy(root: Path, folder: Path, file: Path) -> None:
    place = folder / file
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, place)


def _make_config(sections: Sequence[Section]) -> dict[str, object]:
    nav: list[object] = [{"Home": str(HOME)}, {"All pages": str(INDEX)}]
    nav += [{section.title: list(map(str, section.pages))} for section in sections]
    toggle = {"icon": "lucide/moon", "name": "Dark"}
    light = {"media": "(prefers-color-scheme: light)", "scheme": "default", "toggle": toggle}
    dark = {
        "media": "(prefers-color-scheme: dark)",
        "scheme": "slate",
        "toggle": {"icon": "lucide/sun", "name": "Light"},
    }
    return {
        "site_name": "riseml",
        "site_description": "Distributed training on Docker hosts you own",
        "docs_dir": _PAGES,
        "site_dir": _SITE,
        "use_directory_urls": False,  # pages open from a disk
        "theme": {"name": "material", "font": False, "features": list(_FEATURES), "palette": [light, dark]},
        "plugins": ["search", "offline"],
        "markdown_extensions": ["tables", "pymdownx.superfences", "pymdownx.highlight", {"toc": {"permalink": True}}],
        "extra": {"generator": False},
        "nav": nav,
    }


def _run_zensical(config: Path) -> None:
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=config.parent, check=False)
    if run.returncode != 0:
        output = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr)
        raise SiteError("\n" + output.partition("Traceback (most recent call last)")[0].strip())


def _serve_shim(site: Path) -> None:
    """Give the site its own copy of the script that lets search work from a disk, where browsers start no workers."""
    place = site / _SHIM_PLACE
    shutil.copyfile(_SHIM, place)
    shutil.copyfile(_SHIM.with_name("LICENSE.iframe-worker"), place.with_suffix(".LICENSE"))
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(_SHIM_ADDRESS, os.path.relpath(place, page.parent)), encoding="utf-8")
