"""A wait that a new size of the terminal cuts short, so that a live view fits again at once."""

from __future__ import annotations

import os
import select
import signal
import threading
from types import FrameType


def wait_or_resize(seconds: float) -> None:
    """Wait, at most until the size of the terminal changes.

    The handler writes to a pipe and nothing else, so that a signal at any moment is harmless. A thread other than the
    main one gets no signals, and waits for the whole time.
    """
    if threading.current_thread() is not threading.main_thread():
        threading.Event().wait(seconds)
        return
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(_number: int, _frame: FrameType | None) -> None:
        os.write(writing, b"!")

    before = signal.signal(signal.SIGWINCH, wake)
    try:
        select.select([reading], [], [], seconds)
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
