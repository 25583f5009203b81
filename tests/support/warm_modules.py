"""What servers and commands import on their way: the fork server of the tests imports this module."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import riseml.cli
import riseml.client
import riseml.executors
import riseml.files.project
import riseml.frameworks
import riseml.server
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

_METHODS = ("__init__", "__eq__", "__hash__")
"""What `riseml.base.records` makes when a record first needs it."""

_PACKAGES = (
    riseml.cli,
    riseml.client,
    riseml.executors,
    riseml.frameworks,
    riseml.files.project,
    riseml.server,
    riseml.spec,
)

for package in _PACKAGES:
    for found in walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith(".__main__"):
            import_module(found.name)
for name in _IMPORTED_LATE:
    with suppress(ImportError):
        import_module(name)
for module in [module for name, module in sys.modules.items() if name.startswith("riseml.")]:
    for _, kind in inspect.getmembers(module, dataclasses.is_dataclass):
        for name in _METHODS:
            getattr(kind, name)
gc.collect()
gc.freeze()
