"""Open an address in the user's browser."""

from __future__ import annotations

import threading

LONGEST_OPENING = 10.0  # seconds that a command waits for a browser which lets its caller wait until it is closed


def open_in_browser(address: str) -> threading.Thread:
    """Return the thread that opens an address; the caller joins it, or goes on."""
    import webbrowser

    opening = threading.Thread(target=webbrowser.open, args=(address,), name="browser", daemon=True)
    opening.start()
    return opening
