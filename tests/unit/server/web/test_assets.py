"""The files of the page: small, and those of others as they published them."""

from __future__ import annotations

import gzip
import hashlib
import re
from importlib.resources import files

from riseml.server.web.assets import PAGE, read_assets

MOST_COMPRESSED = 500_000  # bytes
VENDOR = files("riseml.web").joinpath("static", "vendor")


def test_all_files_of_the_page_are_small() -> None:
    sizes = {name: len(gzip.compress(asset.content, 6)) for name, asset in read_assets().items()}
    assert sum(sizes.values()) < MOST_COMPRESSED, sizes


def test_what_others_wrote_is_unchanged_and_has_its_licence() -> None:
    readme = VENDOR.joinpath("README.md").read_text()
    rows = re.findall(r"^\| `(\S+)` \|.* `(LICENSE\.\S+)` .* ([0-9a-f]{64}) \|$", readme, re.M)
    named = {name: checksum for name, _, checksum in rows}
    found = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in VENDOR.iterdir()}
    assert named == {name: found[name] for name in found if not name.startswith(("LICENSE", "README"))}
    assert {licence for _, licence, _ in rows} == {name for name in found if name.startswith("LICENSE")}


def test_every_module_is_asked_for_at_once() -> None:
    """The page names its modules, so that a browser does not find out about one after the other."""
    assets = read_assets()
    page = assets[PAGE].content.decode()
    modules = {name for name in assets if name.endswith(".js") and not name.endswith("/boot.js")}
    assert modules == set(re.findall(r'modulepreload" href="/static/([^"]+)"', page))
