"""The removal of files in a storage of the server."""

from __future__ import annotations

from collections.abc import Sequence

from riseml import wire
from riseml.base.errors import UsageError
from riseml.cli.files.opened import OpenedPath
from riseml.client.file_client import FileClient


def check_removal(sources: Sequence[OpenedPath], text: str, *, recursive: bool) -> Sequence[OpenedPath]:
    """Return the paths to remove.

    Raises:
        UsageError: one is a path of this machine, a whole storage, or a folder without `recursive`.
    """
    for source in sources:
        if not isinstance(source.end.side, FileClient):
            raise UsageError(f"{text} is on this machine", "`riseml rm` removes what is in data:// and output://")
        if not source.end.path:
            raise UsageError(
                f"{text} is a whole storage", "name what is in it; `riseml system clean --outputs` removes outputs"
            )
        if source.entry.kind == "folder" and not recursive:
            raise UsageError(f"{source.shown} is a folder", "add -r to remove it with all in it")
    return sources


def remove_opened(opened: OpenedPath) -> wire.RemovalView:
    """Remove a path part by part, and return what was removed."""
    side = opened.end.side
    assert isinstance(side, FileClient), "checked before"
    total: wire.RemovalView = {"path": opened.end.path, "files": 0, "folders": 0, "size": 0, "done": False}
    while not total["done"]:
        part = side.remove_files(opened.end.path)
        total["files"] += part["files"]
        total["folders"] += part["folders"]
        total["size"] += part["size"]
        total["done"] = part["done"]
    return total
