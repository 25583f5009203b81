"""Errors of connections as requests raises them."""

from __future__ import annotations

import requests
import urllib3
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool


def wrap(cause: OSError) -> requests.exceptions.ConnectionError:
    """Return an error as requests raises it when urllib3 cannot connect."""
    new = urllib3.exceptions.NewConnectionError(HTTPConnection("localhost"), f"cannot connect: {cause}")
    new.__cause__ = cause
    failed = urllib3.exceptions.MaxRetryError(HTTPConnectionPool("localhost"), "/", new)
    return requests.exceptions.ConnectionError(failed)
