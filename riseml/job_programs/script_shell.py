"""The shell that reads the lines of `run` and the steps of `install`: bash where the image or the machine has it.

`/bin/sh` is in every image. It looks for bash with a command of its own and becomes bash: no further process starts.
bash runs with `-e` and `pipefail`, and without the file of BASH_ENV, which programs of the script find as it was.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Literal

SHELL_METRIC = "riseml.shell"
"""The name in the report by which a job says which shell it has."""

SHELL_NUMBERS: Mapping[int, Literal["bash", "sh"]] = {1: "sh", 2: "bash"}
"""What the value of that report means."""

_ANNOUNCEMENT = re.compile(rb'\x1eriseml\.report \{"riseml\.shell": (\d)\}\r?\n')

BASH_COUNTERS = frozenset({"RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "BASHPID", "LINENO"})
"""Variables that bash computes itself, whatever the environment says, until they are unset."""

NO_BASH = "riseml: there is no bash, and this needs `shell: bash`"

_SH = ("/bin/sh", "-ec")

_BECOME_BASH = """\
if command -v bash >/dev/null 2>&1; then
{announce_bash}if [ -n "${{BASH_ENV-}}" ]; then
RISEML_BASH_ENV=$BASH_ENV
export RISEML_BASH_ENV
unset BASH_ENV
set -- 'BASH_ENV=$RISEML_BASH_ENV; export BASH_ENV; unset RISEML_BASH_ENV
'"$1"
fi
exec bash -eo pipefail -c {counters}"$1"
fi
{otherwise}"""


def make_shell_command(
    shell: str,
    script: str,
    *,
    variables: Mapping[str, str] | None = None,
    announces: bool = False,
    notice: str = "",
) -> tuple[str, ...]:
    """Return the command that runs a script; its last word is the script.

    Args:
        shell: `auto`, `bash` or `sh`; `auto` is bash where it is there, else sh.
        script: for a shell with `-e`.
        variables: those of the environment, of which bash would change those of `BASH_COUNTERS`.
        announces: whether the command reports which shell `auto` has found, for `SHELL_METRIC`.
        notice: what `auto` prints on stderr where bash is missing.
    """
    if shell == "sh":
        return (*_SH, script)
    unset = [
        f"unset {name}; export {name}={shlex.quote(value)}\n"
        for name, value in sorted((variables or {}).items())
        if name in BASH_COUNTERS
    ]
    otherwise = [f"echo {shlex.quote(NO_BASH)} >&2", "exit 127"]
    if shell == "auto":
        says = [f"echo {shlex.quote(notice)} >&2"] if notice else []
        otherwise = [*says, *_announce(1, announces=announces), 'exec /bin/sh -ec "$1"']
    text = _BECOME_BASH.format(
        announce_bash="".join(f"{line}\n" for line in _announce(2, announces=announces and shell == "auto")),
        counters=shlex.quote("".join(unset)) if unset else "",
        otherwise="\n".join(otherwise),
    )
    return ("/bin/sh", "-c", text, "riseml", script)


def read_announcement(line: bytes) -> Literal["bash", "sh"] | None:
    """Return the shell that the first line of a job reports; None when it reports none."""
    match = _ANNOUNCEMENT.fullmatch(line)
    return None if match is None else SHELL_NUMBERS.get(int(match[1]))


def _announce(number: int, *, announces: bool) -> list[str]:
    return [f"printf '\\036riseml.report {{\"%s\": {number}}}\\n' {SHELL_METRIC}"] if announces else []
