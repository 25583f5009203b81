"""The section `slurm` of a pool.yml: its keys, the options of sbatch in it, and which other keys do not go with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from riseml.spec.named_files import read_file_path, read_key_path
from riseml.spec.pool.types import SLURM_CLUSTER, EngineKind, HostSpec, SlurmSpec
from riseml.spec.scalars.engine_url import REMOTE_SOCKET, Scheme, parse_engine_url
from riseml.spec.scalars.texts import BadText
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_section

_SECTION: KeyPath = ("slurm",)
_OF_ENGINES = ("hosts", "network", "encrypted", "registry")

_OPTIONS_WITH_KEY = {
    "account": "account",
    "constraint": "constraint",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
    "time": "time_limit",
}
"""Options that have a key in the section `slurm`."""

_RESOURCE_OPTIONS = (
    *("cores-per-socket", "cpus-per-gpu", "cpus-per-task", "exact", "gpus", "gpus-per-node", "gpus-per-socket"),
    *("gpus-per-task", "gres", "mem", "mem-per-cpu", "mem-per-gpu", "nodes", "ntasks", "ntasks-per-node", "overlap"),
)
"""Options that riseml makes from the `resources` of a riseml.yml."""

_OWN_OPTIONS = (
    *("array", "batch", "chdir", "clusters", "comment", "error", "export", "export-file", "get-user-env", "gid"),
    *("help", "het-group", "hold", "immediate", "input", "job-name", "jobid", "kill-on-bad-exit", "multi-prog"),
    *("no-kill", "no-requeue", "open-mode", "output", "parsable", "pty", "requeue", "signal", "test-only", "uid"),
    *("unbuffered", "usage", "version", "wait", "wrap"),
)
"""Options that riseml needs for itself."""


def make_login_entry(settings: SlurmSpec) -> HostSpec | None:
    """Return the login node as an entry of `hosts`, so that ssh reaches it as it reaches those; None: there is none."""
    if not settings.login:
        return None
    return HostSpec(SLURM_CLUSTER, settings.login, identity=settings.identity, known_hosts=settings.known_hosts)


def read_slurm(file: SourceFile, folder: Path) -> tuple[EngineKind, SlurmSpec | None]:
    """Return what runs the jobs, and the cluster if it is one. Problems go to `file`, which is in `folder`."""
    engine = file.read(("engine",), EngineKind) or EngineKind.DOCKER
    value = file.value if isinstance(file.value, dict) else {}
    if engine is EngineKind.DOCKER:
        if "slurm" in value and ("engine",) not in file.bad:
            file.refuse_key(_SECTION, "is only for a Slurm cluster", "add `engine: slurm`, or remove it")
        return engine, None
    for key in _OF_ENGINES:
        if key in value:
            file.refuse_key((key,), "is only for Docker hosts, and `engine` is slurm", "remove it, or `engine`")
    for key in ("output", "data"):
        if isinstance(file.value_at(("storage", key)), dict):
            file.refuse(("storage", key), "is a Docker volume, which a Slurm cluster does not have", "write a path")
    if "slurm" not in value:
        file.refuse_key(_SECTION, "is missing", "write `slurm: {folder: /shared/riseml}`")
        return engine, None
    return engine, _build_slurm(file, folder)


def find_option_problem(option: str) -> tuple[str, str] | None:
    """Return why riseml does not pass on an option of sbatch or srun, and what to do; None: it does.

    Slurm takes any beginning of a long option that only one option has (`--part=gpu`), so a beginning of an option that
    is riseml's is refused, too. The names are those of `man sbatch` and `man srun`.

    Example:
        >>> find_option_problem("--part=gpu")
        ('is made from `partition`', 'write `partition` in `slurm`')
    """
    name = option.removeprefix("--").partition("=")[0]
    key = _find_option(name, _OPTIONS_WITH_KEY)
    if key:
        return f"is made from `{_OPTIONS_WITH_KEY[key]}`", f"write `{_OPTIONS_WITH_KEY[key]}` in `slurm`"
    if _find_option(name, dict.fromkeys(_RESOURCE_OPTIONS)):
        return "is made from the resources of the jobs", "write `resources` in the riseml.yml"
    if _find_option(name, dict.fromkeys(_OWN_OPTIONS)):
        return "is set by riseml itself", "remove it"
    return None


def _build_slurm(file: SourceFile, folder: Path) -> SlurmSpec:
    return read_section(
        file,
        _SECTION,
        SlurmSpec,
        folder=_read_text(file, "folder").rstrip("/"),
        setup=_read_texts(file, "setup"),
        prefix=_read_texts(file, "prefix"),
        options=_read_options(file, "options"),
        step_options=_read_options(file, "step_options"),
        login=_read_login(file),
        identity=read_key_path(file, (*_SECTION, "identity"), folder),
        known_hosts=read_file_path(file, (*_SECTION, "known_hosts"), folder, needed=False),
    )


def _read_login(file: SourceFile) -> str:
    """Return the URL of the login node; empty without one, and then no key of ssh may be there."""
    path = (*_SECTION, "login")
    text = _read_text(file, "login")
    if not text:
        for key in ("identity", "known_hosts"):
            if path not in file.bad and file.value_at((*_SECTION, key)) is not None:
                file.refuse_key((*_SECTION, key), "is only for ssh to a login node", "add `login`, or remove it")
        return ""
    try:
        url = parse_engine_url(text)
    except BadText as bad:
        file.refuse(path, bad.problem, bad.hint)
        return ""
    if url.scheme is not Scheme.SSH or url.socket != REMOTE_SOCKET:
        file.refuse(path, f"is not where ssh logs in: {text}", "write ssh://user@host or ssh://user@host:port")
    return str(url)


def _read_text(file: SourceFile, key: str) -> str:
    return file.read((*_SECTION, key), str) or ""


def _read_texts(file: SourceFile, key: str) -> tuple[str, ...]:
    return tuple(file.items_at((*_SECTION, key)).values())


def _read_options(file: SourceFile, key: str) -> tuple[str, ...]:
    """Return options of Slurm's commands; those that riseml makes itself are refused."""
    options = _read_texts(file, key)
    for index, option in enumerate(options):
        problem = find_option_problem(option)
        if problem is not None:
            file.refuse((*_SECTION, key, index), f"{problem[0]}: {option}", problem[1])
    return options


def _find_option(name: str, options: Mapping[str, object]) -> str:
    """Return the option that Slurm could take a name for; empty: none of these."""
    return next((option for option in options if option.startswith(name)), "")
