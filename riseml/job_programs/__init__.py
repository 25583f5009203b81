"""Programs that run inside jobs, in the Python of the image: standard library only, Python 3.7 or newer
(`reports`, `media_reports`, `event_reader`, `trainer_relay`, `gang_rules` and `stack_reader`: 3.6). `group_shell` is
one for the shell of the image.

A plug-in of a framework puts their text into the script of a job, so that no image needs riseml. Not here: modules that
riseml itself imports. The exceptions are `folder_paths`, `folder_removal`, `folder_listing`, `folder_contents` and
`folder_links`, which run in riseml when it sees a storage itself, and else in a helper container; `gang_rules`, which
the loop and the supervisor of a gang follow; `process_facts`, which the helper of a Docker Engine follows, too; and
`script_shell` and `held_packages`, which make the commands of jobs and of install steps.
"""

from __future__ import annotations

import functools
import json
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

_FUTURE = "from __future__ import annotations\n"
_OWN_IMPORT = re.compile(r"^from riseml\.job_programs\.\w+ import (\([^)]*\)|[^(\n]*)\n", re.MULTILINE)
_PART = re.compile(r"^from riseml\.job_programs\.(\w+) import (?:\([^)]*\)|[^(\n]*)\n", re.MULTILINE)


@functools.cache
def read_program(name: str) -> str:
    """Return the text of a program of this package, with its imports from this package replaced by their text."""
    return _join_parts(name, set())


def _join_parts(name: str, present: set[str]) -> str:
    """Return the text of a program with its parts, each of them once."""

    def join(part: re.Match[str]) -> str:
        if part[1] in present:
            return ""
        present.add(part[1])
        return _join_parts(part[1], present).replace(_FUTURE, "")

    return _PART.sub(join, _read_text(name))


def _read_text(name: str) -> str:
    return Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")


def read_file_service() -> str:
    """Return the text of `file_service` with the modules that it uses, for `python3 -c`."""
    parts = ("paths", "removal", "listing", "use", "contents", "links")
    names = (*(f"folder_{part}" for part in parts), "file_service")
    texts = [_read_text(name) for name in names]
    return _FUTURE + "\n".join(_OWN_IMPORT.sub("", text.replace(_FUTURE, "")) for text in texts)


def write_program(name: str, path: str) -> str:
    """Return the shell line that writes a program to a path below the working directory of a job, if it can."""
    return f"{_begin_writing(path)}{shlex.quote(read_program(name))} >{path}; }} || :"


def _begin_writing(path: str) -> str:
    """Return the begin of the line. Executors make `OWN_FOLDER`, which saves a start of `mkdir`."""
    folder = posixpath.dirname(path)
    return f"{{ {{ [ -d {folder} ] || mkdir -p {folder}; }} && printf %s "


OWN_FOLDER = ".riseml"
"""The folder of riseml in the working directory of a job."""

REPORT_MODULE = f"{OWN_FOLDER}/riseml.py"
"""Where a job finds the module `riseml`, below its working directory."""

EVENT_READER = ("event_reader", f"{OWN_FOLDER}/event_reader.py")
"""The program that reads event files beside a job, and where a container has it."""

TRAINER_RELAY = ("trainer_relay", f"{OWN_FOLDER}/trainer_relay.py")
"""The program that answers reports of Kubeflow's trainer protocol in a job, and where the job has it."""

_START_RELAY = """\
if [ -z "${KUBEFLOW_TRAINER_SERVER_URL+x}" ] && command -v python3 >/dev/null 2>&1; then
@write@
exec 9>&1
[ ! -f @path@ ] || eval "$(python3 -IS @path@ $$ 9 </dev/null)" || :
exec 9>&-
fi
"""
"""The background process that stays is no child of the shell: a `wait` of the script does not wait for it."""

_FIND_MODULE = 'export PYTHONPATH="$PWD/.riseml${PYTHONPATH:+:$PYTHONPATH}"'


def add_report_module(script: str) -> str:
    """Return a script of a job that first writes the module `riseml`, which its Python programs then import."""
    return f"{write_program('media_reports', REPORT_MODULE)}\n{_FIND_MODULE}\n{script}"


@functools.cache
def start_trainer_relay() -> str:
    """Return the lines that start the program `trainer_relay`, unless the job reports to a trainer of its own."""
    return _START_RELAY.replace("@write@", write_program(*TRAINER_RELAY)).replace("@path@", TRAINER_RELAY[1])


def leave_report_module(script: str) -> str:
    """Return a script of `add_report_module` that finds the module in a file instead of writing it, and starts no
    `trainer_relay`.
    """
    script = script.replace(start_trainer_relay(), "")
    begin = _begin_writing(REPORT_MODULE)
    end = f" >{REPORT_MODULE}; }} || :\n{_FIND_MODULE}\n"
    _, separator, remainder = script.partition(end.lstrip())
    return f"{_FIND_MODULE}\n{remainder}" if script.startswith(begin) and separator else script


def launch_ranks(command: Sequence[str], first: int, ranks: Sequence[Mapping[str, str]], **more: object) -> str:
    """Return the shell line that runs a command in several processes of one job, with the program `rank_launcher`.

    `python3 -IS`: the project's own modules do not change it. The processes get the environment of the job as it is.

    Args:
        command: with the script of `frameworks.base.join_lines_at_barriers`.
        first: the rank of the first process.
        ranks: for each process, the environment variables that only it has.
        more: what `rank_launcher` needs to meet the other jobs.
    """
    order = json.dumps({"command": list(command), "first": first, "ranks": [dict(rank) for rank in ranks], **more})
    return f"exec python3 -IS -c {shlex.quote(read_program('rank_launcher'))} {shlex.quote(order)}"
