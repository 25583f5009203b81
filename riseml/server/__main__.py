"""`python -m riseml.server`: what runs before the server's modules are imported."""

from __future__ import annotations

import gc
import sys


def run() -> int:
    """Run the server of RISEML_HOME and return the exit code.

    Python's garbage collector is off until the application is made: imports make no garbage, and collecting takes a
    tenth of the server's cold start.
    """
    gc.disable()
    from riseml.server.process import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
