"""What HTTP clients of tests get as their TLS settings when they speak plain HTTP."""

from __future__ import annotations

import ssl

NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Settings that trust no certificate. Without them each new client of httpx reads the certificates of all authorities:
22 ms of processor time, and tests that poll a server make twenty clients a second.

Example:
    httpx.Client(base_url="http://127.0.0.1:8000", verify=NO_AUTHORITIES)
"""
