"""Names of variables whose values are probably secrets, and which are therefore not shown."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"SECRET|PASSW|PASSPHRASE|PGPASS|CREDENTIAL|(API|ACCESS|PRIVATE)KEY|CONNECTION_STRING|DATABASE_URL"
    r"|TOKEN[0-9]*(_|$)|(^|_)(KEYS?[0-9]*|PASS|PWD|AUTH|COOKIE|DSN|JWT|PAT)(_|$)",
    re.IGNORECASE,
)
_TOKENS = re.compile(r"TOKENS[0-9]*$", re.IGNORECASE)
_COUNT = re.compile(r"(^|_)(MAX|MIN|NUM|N|NEW|TOTAL)_([A-Z]+_)?TOKENS$", re.IGNORECASE)
"""Names of numbers, which the parameters of a language model often are: MAX_TOKENS."""


def looks_secret(name: str) -> bool:
    """Return True for the name of a variable whose value is probably a secret.

    Example: `looks_secret("WANDB_API_KEY")` is True, `looks_secret("MAX_TOKENS")` is not.
    """
    if _SECRET.search(name) is not None:
        return True
    return _TOKENS.search(name) is not None and _COUNT.search(name) is None
