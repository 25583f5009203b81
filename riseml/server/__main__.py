"""`python -m riseml.server`: the code that runs before the server's modules are imported."""

from __future__ import annotations

import gc
import importlib
import sys
import warnings
from types import ModuleType
from typing import Any


def run() -> int:
    """Run the server of RISEML_HOME and return the exit code.

    The collector of cycles is off until the application is made: imports make no garbage, and searching what they make
    for it takes a tenth of the server's cold start.
    """
    gc.disable()
    _prepare_pydantic()
    _prepare_requests()
    _prepare_uvicorn()
    from riseml.server.process import main

    return main(sys.argv[1:])


def _prepare_pydantic() -> None:
    """Keep pydantic from making what the server may never need: that saves a fourteenth of the cold start.

    FastAPI has classes for OpenAPI's page: their validators are made when the page is first asked for, and not at the
    start. FastAPI also asks whether a class is one of pydantic's first version. Where that version is absent, FastAPI
    takes it for none, and does not import its 26 modules.
    """
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]  # this is how Python is told that a module is absent
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    import fastapi  # noqa: F401  # its classes, and no others, are made late

    del BaseModel.model_config["defer_build"]


def _prepare_requests() -> None:
    """Keep requests, with which the Docker SDK calls engines, from importing libraries that it rarely needs.

    One guesses the encoding of text: an engine's answers are JSON in UTF-8, and UTF-8 is what requests takes then. The
    library has 3 MiB and takes a fiftieth of the cold start. requests warns that it is absent. The other one, idna, has
    the tables for names of hosts in other letters than ASCII: requests imports it again when it meets such a name.
    """
    absent = dict.fromkeys(("charset_normalizer", "chardet"))
    sys.modules.update(absent)  # type: ignore[arg-type]  # None: Python takes the module for absent
    sys.modules["idna"] = ModuleType("idna")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import requests  # noqa: F401  # it looks for these libraries when it is first imported, and never again
    for name in (*absent, "idna", "requests.packages.idna"):
        sys.modules.pop(name, None)


def _prepare_uvicorn() -> None:
    """Let uvicorn do without its command line, for which it imports click and what restarts a server: 2 MiB.

    The package imports its server from the module of the command line, so that a stand-in gives it.
    """
    stand_in = ModuleType("uvicorn.main")
    stand_in.__getattr__ = _find_in_server  # type: ignore[method-assign]  # Python calls it for names that are not there
    sys.modules["uvicorn.main"] = stand_in
    import uvicorn  # noqa: F401  # it takes the names from the stand-in

    del sys.modules["uvicorn.main"]


def _find_in_server(name: str) -> Any:
    """Return what uvicorn's server has under this name: `Server`; None for a name of its command line."""
    return getattr(importlib.import_module("uvicorn.server"), name, None)


if __name__ == "__main__":
    sys.exit(run())
