"""The console script `riseml`: a shell that completes an ID gets its answer before the commands are imported."""

from __future__ import annotations

import gc
import os
import sys


def run() -> None:
    """Run the command line of this process, or answer a shell."""
    wanted = os.environ.get("_RISEML_NAMES")  # set by the scripts of `riseml completion`
    if wanted:
        from riseml.cli.completion_names import print_names

        print_names(wanted, sys.argv[1:], os.environ)
        sys.stdout.flush()
        os._exit(0)  # Python takes 5 of some 40 ms of processor time to tidy up
    gc.disable()  # imports make no garbage, and searching what they make for it takes longer than some commands
    from riseml.cli.main import run as run_command

    gc.freeze()
    gc.enable()
    run_command()
