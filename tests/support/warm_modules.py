"""What servers and commands import on their way: the fork server of the tests imports this module."""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import riseml.cli
import riseml.client
import riseml.frameworks
import riseml.project
import riseml.spec

_IMPORTED_LATE = (
    "anyio._backends._asyncio",
    "ctypes.util",
    "encodings.utf_8_sig",
    "psutil",
    "riseml.server.process",
    "typer._click.decorators",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "yaml",
)
"""What functions import; a module that is not there is passed over."""

for package in (riseml.cli, riseml.client, riseml.frameworks, riseml.project, riseml.spec):
    for found in walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith(".__main__"):
            import_module(found.name)
for name in _IMPORTED_LATE:
    with suppress(ImportError):
        import_module(name)
gc.collect()
gc.freeze()
