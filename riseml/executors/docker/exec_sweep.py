"""End the processes that a command left in its container. The engine has no call for that: a second command sends the
signals.

Every process that a command starts inherits a marker in its environment, and the sweep finds it by this marker. The
script needs only the shell that every job needs: images without `kill`, `grep` and `ps` are common.
"""

from __future__ import annotations

import os
import secrets
from functools import cache

MARKER = "RISEML_COMMAND_KEY"
"""The variable of every process of a command; its value is random, and differs for each command."""


_SWEEP = r"""
found=0
for folder in /proc/[0-9]*; do
  pid=${folder#/proc/}
  [ "$pid" != "$$" ] || continue
  marked=
  { while IFS= read -r line || [ -n "$line" ]; do
    case $line in *"$2"*) marked=1 ;; esac
    [ -z "$3" ] || case $line in *"$3"*) marked= ;; esac
    line=
  done <"$folder/environ"; } 2>/dev/null
  [ -n "$marked" ] || continue
  kill "-$1" "$pid" 2>/dev/null && found=$((found + 1))
done
echo "$found"
"""


@cache
def _make_beginning(process: int) -> str:
    """Return the prefix of all keys of one server process: a command with another prefix belongs to a server that has
    ended."""
    return f"{process}-{secrets.token_hex(8)}-"


def make_key() -> str:
    """Return a new key for one command of this server."""
    return _make_beginning(os.getpid()) + secrets.token_hex(16)


def make_sweep(signal: str, key: str) -> list[str]:
    """Return a command that sends a signal (`HUP`) to every process with this key, and prints their number."""
    return ["/bin/sh", "-c", _SWEEP, "sh", signal, f"{MARKER}={key}", ""]


def make_sweep_of_former_servers(signal: str) -> list[str]:
    """Return the same for the commands of all servers that have ended, whatever their keys are."""
    return ["/bin/sh", "-c", _SWEEP, "sh", signal, f"{MARKER}=", f"{MARKER}={_make_beginning(os.getpid())}"]
