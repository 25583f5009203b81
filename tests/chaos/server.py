"""The server with a clock that a test can set: the file `clock` in its home holds the error of the clock in seconds."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

from riseml.server import clock

_true = clock.now


def _now() -> datetime:
    return _true() + timedelta(seconds=_offset())


def _offset() -> int:
    path = Path(os.environ["RISEML_HOME"]) / "clock"
    text = path.read_text() if path.exists() else ""
    return int(text or 0)


clock.now = _now  # before other modules import it

from riseml.server.process import main  # noqa: E402  # modules imported from here on get the test's clock

if __name__ == "__main__":
    sys.exit(main())
