"""Options of sbatch and srun that users add, and those that riseml makes itself.

Slurm takes any beginning of a long option that only one option has (`--part=gpu`), so a beginning of an option that is
riseml's is refused, too. The names are those of `man sbatch` and `man srun`.
"""

from __future__ import annotations

from collections.abc import Mapping

_SETTINGS = {
    "account": "account",
    "constraint": "constraint",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
    "time": "time_limit",
}
"""Options that have a key in the section `slurm`."""

_RESOURCES = (
    *("cores-per-socket", "cpus-per-gpu", "cpus-per-task", "exact", "gpus", "gpus-per-node", "gpus-per-socket"),
    *("gpus-per-task", "gres", "mem", "mem-per-cpu", "mem-per-gpu", "nodes", "ntasks", "ntasks-per-node", "overlap"),
)
"""Options that riseml makes from the `resources` of a riseml.yml."""

_OWN = (
    *("array", "batch", "chdir", "clusters", "comment", "error", "export", "export-file", "get-user-env", "gid"),
    *("help", "het-group", "hold", "immediate", "input", "job-name", "jobid", "kill-on-bad-exit", "multi-prog"),
    *("no-kill", "no-requeue", "open-mode", "output", "parsable", "pty", "requeue", "signal", "test-only", "uid"),
    *("unbuffered", "usage", "version", "wait", "wrap"),
)
"""Options that riseml needs for itself."""


def find_option_problem(option: str) -> tuple[str, str] | None:
    """Return why riseml does not pass on an option, and what to do; None: it does.

    Example:
        >>> find_option_problem("--part=gpu")
        ('is made from `partition`', 'write `partition` in `slurm`')
    """
    name = option.removeprefix("--").partition("=")[0]
    key = _find(name, _SETTINGS)
    if key:
        return f"is made from `{_SETTINGS[key]}`", f"write `{_SETTINGS[key]}` in `slurm`"
    if _find(name, dict.fromkeys(_RESOURCES)):
        return "is made from the resources of the jobs", "write `resources` in the riseml.yml"
    if _find(name, dict.fromkeys(_OWN)):
        return "is set by riseml itself", "remove it"
    return None


def _find(name: str, options: Mapping[str, object]) -> str:
    """Return the option that Slurm could take a name for; empty: none of these."""
    return next((option for option in options if option.startswith(name)), "")
