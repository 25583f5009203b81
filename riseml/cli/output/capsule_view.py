"""A capsule for people: everything that another run of an experiment needs. `--json` prints all fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from riseml.cli.output.text import clean_text, count_noun
from riseml.files.project.messages import join_first

if TYPE_CHECKING:
    from riseml import wire

_MOST_NAMES = 8  # the most packages or files in one line


def list_capsule(capsule: wire.Capsule) -> list[str]:
    """Return the lines of a capsule, one for each subject."""
    data = capsule["data"]
    rows = [
        (
            "experiment",
            f"{capsule['experiment']} of {capsule['project']}, {capsule['state']}, riseml {capsule['riseml']}",
        ),
        ("repeats", capsule["rerun_of"] or ""),
        ("parameters", _join_parts(f"{name}={value}" for name, value in capsule["parameters"].items())),
        ("seeds", _join_parts(f"{name}={value}" for name, value in capsule["seeds"].items())),
        ("code", _describe_code(capsule["code"])),
        *(row for environment in capsule["environments"] for row in _list_environment(environment)),
        ("variables", _describe_variables(capsule["variables"])),
        ("data", data["folder"] + (f": {_shorten(data['entries'])}" if data["entries"] else "")),
        ("output", capsule["output"]),
        *(("host", _describe_host(host)) for host in capsule["hosts"]),
        *(("job", _describe_job(job)) for job in capsule["jobs"]),
        ("results", _join_parts(f"{name}: {metric['last']}" for name, metric in capsule["results"].items())),
    ]
    return [clean_text(f"{name + ':':12}{text}") for name, text in rows if text]


def _list_environment(environment: wire.CapsuleEnvironment) -> list[tuple[str, str]]:
    return [
        ("image", environment["image"]),
        ("digest", environment["digest"] or ""),
        *(("install", step) for step in environment["install"]),
        ("packages", "" if environment["packages"] is None else _shorten(environment["packages"])),
    ]


def _describe_code(code: wire.CapsuleCode) -> str:
    git = code["git"]
    if not code["digest"]:
        return ""
    where = "in the output" if code["included"] else "on the server"
    if git is None:
        return f"{code['digest'][:12]}, {where}"
    clean = {True: "clean", False: "with changes", None: "not known whether it was clean"}[git["clean"]]
    if missing := git.get("missing"):
        clean = f"without {join_first(missing)}"
    return f"{code['digest'][:12]}, {where}; git {git['revision'][:12]}, {clean}"


def _describe_variables(variables: wire.CapsuleVariables) -> str:
    passed = [f"{name} (passed on)" for name in variables["passed"]]
    return _join_parts([*passed, *variables["written"]])


def _describe_host(host: wire.CapsuleHost) -> str:
    gpus = [f"{gpu['name']} (driver {gpu['driver']})" for gpu in host["gpus"]]
    return _join_parts([host["name"], *filter(None, [host["runs"]]), *gpus])


def _describe_job(job: wire.CapsuleJob) -> str:
    ended = "" if job["exit_code"] is None else f", exit code {job['exit_code']}"
    shell = f", {shell_name}" if (shell_name := job.get("shell")) else ""
    return f"{job['name']} on {job['host'] or 'no host'}{shell}, {job['state']}{ended}"


def _shorten(names: list[str]) -> str:
    names_text = _join_parts(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return names_text if more <= 0 else f"{names_text} and {count_noun(more, 'other')}"


def _join_parts(parts: Iterable[str]) -> str:
    return ", ".join(parts)
