"""Read first words that are no command of riseml: `help`. Pure, and imported for such words alone."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.base.errors import UsageError
from riseml.cli.command_table import is_group

_HELP_OPTIONS = ("-h", "--help")


def translate_words(words: Sequence[str]) -> list[str]:
    """Return the command line that riseml has for these words; the same words when it knows nothing better.

    Args:
        words: a command line without `riseml`, whose first word is no command.

    Raises:
        UsageError: riseml knows what the words mean, and has no command line for them.

    Example:
        >>> translate_words(["help", "pool", "add"])
        ['pool', 'add', '--help']
    """
    return _translate_help(words[1:]) if words and words[0] == "help" else list(words)


def _translate_help(names: Sequence[str]) -> list[str]:
    chosen = [name for name in names if name not in _HELP_OPTIONS]
    for name in chosen:
        if name.startswith("-"):
            raise UsageError(f"`riseml help` takes the name of a command, not {name!r}", "write `riseml help train`")
    most = 2 if chosen and is_group(chosen[0]) else 1
    if len(chosen) > most:
        path = " ".join(chosen[:most])
        raise UsageError(f"{path} has no command {chosen[most]!r}", f"`riseml help {path}` explains what it has")
    return [*chosen, "--help"]
