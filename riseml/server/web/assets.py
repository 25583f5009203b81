"""The files of the page, read once. The server serves only files that existed when it read them.

Their addresses have a version, so that a browser keeps them for good and needs one request to load the page again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files

from riseml.base.records import dataclass

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

PAGE = "/"
"""The page itself, among the ends of addresses of its files."""

_VENDOR = "vendor"  # the folder with third-party files, as published
_PAGE_FILE = "index.html"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    content: bytes
    type: str  # its media type


def read_frame() -> Mapping[str, Asset]:
    """Return the files of the frame around the program of a job, by their names."""
    folder = files("riseml.web").joinpath("proxied_app")
    kinds = {entry.name: _TYPES.get(f".{entry.name.rpartition('.')[2]}") for entry in folder.iterdir()}
    return {name: Asset(folder.joinpath(name).read_bytes(), kind) for name, kind in kinds.items() if kind is not None}


def read_assets() -> Mapping[str, Asset]:
    """Return the files of the page by the ends of their addresses, such as `0123abcd/app.js`, and the page itself."""
    static = files("riseml.web").joinpath("static")
    named_assets = {}
    for folder, prefix in ((static, ""), (static.joinpath(_VENDOR), f"{_VENDOR}/")):
        for entry in folder.iterdir():
            kind = _TYPES.get(f".{entry.name.rpartition('.')[2]}")
            if kind is not None:
                named_assets[f"{prefix}{entry.name}"] = Asset(entry.read_bytes(), kind)
    version = hashlib.sha256(b"".join(named_assets[name].content for name in sorted(named_assets))).hexdigest()[:16]
    page = named_assets.pop(_PAGE_FILE)
    assets = {f"{version}/{name}": asset for name, asset in named_assets.items()}
    assets[PAGE] = replace(page, content=page.content.replace(b"/static/", f"/static/{version}/".encode()))
    return assets
