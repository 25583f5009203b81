"""Ends a process of JAX at an uncaught exception, as `sitecustomize`, which Python imports when it starts.

Without it `jax.distributed` waits at the end of the process for all others, for up to five minutes; these wait for the
process that failed. A module of this name that the image has is imported, too.
"""

from __future__ import annotations

import contextlib
import os
import sys
from types import TracebackType


def end_at_exception(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """Print the exception, then end the process if JAX would wait for the others."""
    sys.__excepthook__(kind, value, trace)
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def import_next() -> None:
    """Import the `sitecustomize` that this one hides, if there is one."""
    here, own = os.path.dirname(os.path.abspath(__file__)), sys.modules.pop("sitecustomize", None)
    kept = list(sys.path)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    with contextlib.suppress(ImportError):
        __import__("sitecustomize")
    sys.path[:] = kept
    if own is not None:
        sys.modules.setdefault("sitecustomize", own)


sys.excepthook = end_at_exception
import_next()
