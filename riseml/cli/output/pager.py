"""Show lines page by page, in the user's pager."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence

_PAGER = "less"
_LESS = "FRX"  # end at once when everything fits, pass colours on, leave the text on the screen


def show_in_pager(lines: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Show lines in the pager that `PAGER` names, else in `less`; return False when it cannot be started.

    Args:
        lines: of a view; they must be safe for a terminal.
        environ: of the command. An empty `PAGER` means that the user wants none.
    """
    command = shlex.split(environ.get("PAGER", _PAGER))
    if not command:
        return False
    text = "\n".join(lines) + "\n"
    # Ctrl-C belongs to the pager: it stops a search there, and ends neither the pager nor this command.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = subprocess.run(command, input=text.encode(), env={"LESS": _LESS, **environ}, check=False)
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return ended.returncode != _NOT_STARTED


_NOT_STARTED = 127  # exit code of a shell, or of `env`, that cannot find the pager
