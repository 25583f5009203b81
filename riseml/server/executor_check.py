"""`python -m riseml.server.executor_check`: whether a server with these settings could run jobs here and now.

The command line asks this before it replaces a server, so that a choice which cannot be honoured changes nothing. A
problem is printed as its message and its hint, one line each.
"""

from __future__ import annotations

import os
import sys

from riseml.base.errors import RisemlError
from riseml.base.settings import read_settings
from riseml.server.hosts.choose_executor import check_executor


def main() -> int:
    """Return 0, or the exit code of the problem."""
    try:
        check_executor(read_settings(os.environ))
    except RisemlError as error:
        print(" ".join(error.message.splitlines()))
        print(error.hint or "")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
