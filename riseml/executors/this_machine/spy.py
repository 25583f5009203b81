"""The program py-spy, which comes with riseml's own environment."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from pathlib import Path

from riseml.base.errors import EngineError

PACKAGE = "py-spy"


@cache
def find_spy() -> Path:
    """Return the path of py-spy: one file without libraries, which runs on every Linux of this kind of processor.

    Raises:
        EngineError: it is not installed.
    """
    try:
        files = metadata.files(PACKAGE) or ()
    except metadata.PackageNotFoundError:
        files = ()
    for file in files:
        path = Path(str(file.locate())).resolve()
        if file.name == PACKAGE and path.is_file():
            return path
    raise EngineError(
        "py-spy is not installed beside riseml's server", "`pip install riseml` brings it", permanent=True
    )


@cache
def read_spy_version() -> str:
    """Return the version of py-spy: `0.4.3`."""
    return metadata.version(PACKAGE)
