"""Variables of the user's environment that a command sends to the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from riseml.errors import UsageError
from riseml.spec.scalars.texts import is_valid_text


def take_variables(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables that are set.

    Raises:
        UsageError: a value cannot be sent. The message does not have it, because it may be a secret.
    """
    taken = {name: environ[name] for name in names}
    for name, value in taken.items():
        if not is_valid_text(value):
            raise UsageError(f"the variable {name} is not UTF-8 text", f"set it in UTF-8: `export {name}=...`")
    return taken
