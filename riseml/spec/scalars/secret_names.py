"""Names of variables whose values are probably secrets, and which are therefore not shown."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"SECRET|PASSW|PASSPHRASE|PGPASS|CREDENTIAL|APIKEY|TOKEN(_|$)|(^|_)(KEYS?|PASS|PWD|AUTH|COOKIE|DSN)(_|$)",
    re.IGNORECASE,
)


def looks_secret(name: str) -> bool:
    """Return True for the name of a variable whose value is probably a secret.

    Example: `looks_secret("WANDB_API_KEY")` is True, `looks_secret("MAX_TOKENS")` is not.
    """
    return _SECRET.search(name) is not None
