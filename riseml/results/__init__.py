"""The results of experiments as rows: columns, conditions, order and ranks.

Pure: values in, values out. It knows no store, no HTTP and no terminal, so that server and command line can use it.
Not here: where rows come from (`server.api.views.results`), and how they are printed (`cli.output.results_view`).

The package can be called: `riseml.results(144)` is what users write in Python (`cli.python_results`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package that is also the function of its name."""

    def __call__(self, *identities: int | str, **choice: Any) -> Any:
        """Return the results of experiments and sets; `riseml.cli.python_results.load_results` says more."""
        # Named by a text: the command line is above this package, which imports nothing of it.
        return import_module("riseml.cli.python_results").load_results(*identities, **choice)


sys.modules[__name__].__class__ = _CallablePackage
