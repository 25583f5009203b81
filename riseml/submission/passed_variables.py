"""Variables of the user's environment that a command sends to the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from riseml.base.errors import UsageError
from riseml.spec.scalars.text_sizes import HINT, LONGEST, MOST_TOGETHER, describe_size, measure_variable
from riseml.spec.scalars.texts import is_valid_text


def take_variables(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables that are set.

    Raises:
        UsageError: a value cannot be sent, or is longer than Linux takes. The message does not have it, because it may
            be a secret.
    """
    variables = {name: environ[name] for name in names}
    for name, value in variables.items():
        if not is_valid_text(value):
            raise UsageError(f"the variable {name} is not UTF-8 text", f"set it in UTF-8: `export {name}=...`")
        size = measure_variable(name, value)
        if size > LONGEST:
            raise UsageError(f"the variable {name} has {describe_size(size)}", HINT)
    total = sum(measure_variable(name, value) for name, value in variables.items())
    if total > MOST_TOGETHER:
        most = f"and Linux takes about {MOST_TOGETHER:,}"
        raise UsageError(f"the variables {', '.join(variables)} have {total:,} bytes together, {most}", HINT)
    return variables
