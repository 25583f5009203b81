"""Whether this machine's kernel can encrypt networks across hosts (IPsec ESP, as Docker's overlay networks use it)."""

from __future__ import annotations

import subprocess

_NAMESPACE = "riseml-esp"
_KEY = "0x" + "01" * 20
_STATE = ("src", "192.0.2.1", "dst", "192.0.2.2", "proto", "esp", "spi", "0x1", "mode", "transport")


def explain_missing_encryption() -> str | None:
    """Return why the kernel cannot encrypt; None: it can. It needs root and `ip`."""
    subprocess.run(["ip", "netns", "add", _NAMESPACE], check=True)
    try:
        command = ["ip", "-n", _NAMESPACE, "xfrm", "state", "add", *_STATE, "aead", "rfc4106(gcm(aes))", _KEY, "64"]
        tried = subprocess.run(command, check=False, capture_output=True, text=True)
    finally:
        subprocess.run(["ip", "netns", "delete", _NAMESPACE], check=True)
    return None if tried.returncode == 0 else " ".join(tried.stderr.split())
