"""End a failed process of JAX at once. The module is installed as `sitecustomize`, which Python imports when it starts.

Without it `jax.distributed` waits at the end of the process for all others, for up to five minutes; these wait for the
process that failed. A module of this name that the image has is imported, too.

An exception that nothing catches reaches `sys.excepthook`. A SystemExit does not, and its exit code is lost once JAX
waits. From Python 3.12 on, `sys.monitoring` says when one leaves the outermost frame. Before, `sys.exit` raises a
SystemExit that Python destroys while a frame runs when something has caught it, and without any frame when not.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import os
import sys
from types import TracebackType
from typing import NoReturn

_MAIN = _thread.get_ident()
_TOOL = 4  # tool ID for `sys.monitoring`; debuggers and profilers have others


def end_at_exception(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """Print the exception, then end the process if JAX would wait for the others."""
    sys.__excepthook__(kind, value, trace)
    end_process(1)


def end_at_exit(code: object) -> None:
    """End the process with the code of a SystemExit, as Python does, if JAX would wait for the others."""
    if code is not None and not isinstance(code, int):
        if has_joined():
            print(code, file=sys.stderr)
        end_process(1)
    elif code:
        end_process(code & 0xFF)


def end_process(code: int) -> None:
    """End the process if JAX would wait for the others."""
    if has_joined():
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def has_joined() -> bool:
    """Return True while this process is one of a group of JAX."""
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return getattr(state, "client", None) is not None


def leave_frame(_code: object, _offset: int, exception: BaseException) -> None:
    """End the process if a SystemExit leaves the outermost frame of the main thread."""
    if isinstance(exception, SystemExit) and _thread.get_ident() == _MAIN and sys._getframe(1).f_back is None:
        end_at_exit(exception.code)


class Leaving(SystemExit):
    """A SystemExit that notices whether it ends the process."""

    def __del__(self) -> None:
        """End the process if no code has caught the exception: then no frame is left."""
        try:
            sys._getframe(1)
        except ValueError:
            if _thread.get_ident() == _MAIN:
                end_at_exit(self.code)


Leaving.__name__ = Leaving.__qualname__ = "SystemExit"
Leaving.__module__ = "builtins"


def leave(code: object = None) -> NoReturn:
    """Raise a SystemExit, as `sys.exit` and `exit` do."""
    raise (Leaving if _thread.get_ident() == _MAIN else SystemExit)(code)


def import_next() -> None:
    """Import the `sitecustomize` that this one hides, if there is one."""
    folder = os.path.dirname(os.path.abspath(__file__))
    own = sys.modules.pop("sitecustomize", None)
    search_path = list(sys.path)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    with contextlib.suppress(ImportError):
        __import__("sitecustomize")
    sys.path[:] = search_path
    if own is not None:
        sys.modules.setdefault("sitecustomize", own)


sys.excepthook = end_at_exception
if sys.version_info >= (3, 12):
    with contextlib.suppress(ValueError):  # another tool has the number
        sys.monitoring.use_tool_id(_TOOL, "riseml")
        sys.monitoring.register_callback(_TOOL, sys.monitoring.events.PY_UNWIND, leave_frame)
        sys.monitoring.set_events(_TOOL, sys.monitoring.events.PY_UNWIND)
else:
    sys.exit = builtins.exit = builtins.quit = leave  # type: ignore[assignment]  # site has its own class
import_next()
