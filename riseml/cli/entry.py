"""The console script `riseml`. It answers shell completions of IDs before it imports the commands."""

from __future__ import annotations

import gc
import os
import sys

_INTERRUPTED = 130  # as `riseml.base.errors.Interrupted`, which is imported later


def run() -> None:
    """Run the command line of this process, or answer a shell."""
    try:
        _run()
    except KeyboardInterrupt:  # before a command runs, which handles its own
        os._exit(_INTERRUPTED)  # nothing is printed yet, and a second Ctrl-C cannot interrupt Python's own clean-up


def _run() -> None:
    kind = os.environ.get("_RISEML_NAMES")  # set by the scripts of `riseml completion`
    if kind:
        from riseml.cli.completion_names import print_names

        print_names(kind, sys.argv[1:], os.environ)
        sys.stdout.flush()
        os._exit(0)  # skipping Python's own clean-up saves 5 of some 40 ms of processor time
    gc.disable()  # imports make no garbage, and collecting takes longer than some commands
    from riseml.cli.main import run as run_command

    gc.freeze()
    gc.enable()
    run_command()
