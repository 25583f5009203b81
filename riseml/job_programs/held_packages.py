"""The packages that install steps keep as the image brought them: those that are built for its devices.

pip replaces the torch of an image without a question when another package asks for a newer one, and the job then trains
with a build for other devices. So each step runs with the names and versions of these packages as constraints of pip
and uv. The names of the folders `*.dist-info` say them: every Python can read these, and no package is imported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

IMAGE_FILE = "/tmp/.riseml-held.txt"  # in the container of one build
"""The file of the constraints in the containers of a build. Every user of an image may write there.

Its first line names the constraints of pip's own files.
"""

HELD_NAMES = (
    r"torch|torchvision|torchaudio|torchtext"  # each built for one version of torch and one of CUDA
    r"|triton|pytorch-triton(?:-\w+)?"  # the compiler of one version of torch
    r"|tensorflow(?:-(?:cpu|gpu|rocm|intel|macos|aarch64|cpu-aws))?|tf-nightly"  # with or without CUDA
    r"|jax|jaxlib|jax-(?:cuda|rocm)\d+-(?:plugin|pjrt)"  # fit each other only in one version
    r"|horovod"  # compiled for the framework and the MPI of the image
    r"|nvidia-(?:cu\w*|nccl|nvjitlink|nvshmem|nvtx)(?:-[\w-]+)?"  # the libraries of CUDA that these load
)
"""The names of the packages, normalised, as a regular expression for every Python.

Packages in Python alone (keras), small ones (numpy) and those with a build of their own for every version (xgboost) are
not held: most requirement files name versions of them.
"""

_FRAMEWORK_STEP = re.compile(r'pip install "jax\[\w+\]==[^"]+"')  # the step that `framework.version` makes

# A step may run in the folder of the project, which may have an re.py: Python looks there first.
_PROGRAM = r"""
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import os, re
try:
    from configparser import RawConfigParser
except ImportError:
    from ConfigParser import RawConfigParser
held = {}
name = re.compile("(?:NAMES)$")
version = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?$")
for folder in sys.path:
    for entry in os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK) else ():
        match = re.match(r"([^-]+)-([^-]+)(-py[\d.]+(-.*)?)?\.(dist|egg)-info$", entry)
        package = match and re.sub("[_.]+", "-", match.group(1)).lower()
        if match and name.match(package) and version.match(match.group(2).lower()):
            held.setdefault(package, match.group(2))
user = os.path.expanduser("~")
settings = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config"), "pip", "pip.conf")
files = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", os.path.join(user, ".pip", "pip.conf"), settings]
files += [os.path.join(sys.prefix, "pip.conf"), os.environ.get("PIP_CONFIG_FILE", "")]
own = ""
try:
    parser = RawConfigParser()
    parser.read([] if files[-1] == os.devnull else files)
    for section in ("global", "install"):
        own = parser.get(section, "constraint") if parser.has_option(section, "constraint") else own
except Exception:
    own = ""  # pip says what is wrong with its files
with open(sys.argv[1], "w") as file:
    file.write("# " + " ".join(own.split()) + "\n" if held else "")
    file.write("".join("%s==%s\n" % pair for pair in sorted(held.items())))
shown = ["%s %s" % pair for pair in sorted(held.items()) if not pair[0].startswith("nvidia-")]
rest = len(held) - len(shown)
shown += ["%d packages of NVIDIA" % rest] if rest > 1 else ["one package of NVIDIA"] if rest else []
if held:
    print("riseml: the install steps keep what the environment brought: " + ", ".join(shown))
""".replace("NAMES", HELD_NAMES)

_WRITE = """\
python3 -c "$1" "$2" 2>/dev/null || python -c "$1" "$2" 2>/dev/null || printf '' >"$2"
"""

_RUN = f"""\
[ -e "$2" ] || {{
{_WRITE}}} 2>/dev/null
if [ -s "$2" ]; then
IFS= read -r riseml_own <"$2"
riseml_own=${{PIP_CONSTRAINT:-${{riseml_own#"# "}}}}
PIP_CONSTRAINT="${{riseml_own:+$riseml_own }}$3"
unset riseml_own
UV_CONSTRAINT="${{UV_CONSTRAINT:+$UV_CONSTRAINT }}$3"
export PIP_CONSTRAINT UV_CONSTRAINT
fi
shift 3
exec "$@"
"""


def count_framework_steps(install: Sequence[str]) -> int:
    """Return how many of the first steps install the version of a framework: the later ones keep what these bring."""
    return 1 if install and _FRAMEWORK_STEP.fullmatch(install[0]) else 0


def hold_packages(command: tuple[str, ...], path: str) -> tuple[str, ...]:
    """Return the command that runs an install step with the constraints; the first one of an environment writes them.

    Constraints that the environment or pip's own files name apply, too: the variable would replace those. Without a
    Python there is nothing to hold.

    Args:
        command: of the step.
        path: an absolute one, of the file of the constraints.
    """
    # pip and uv read a space as the end of a path.
    url = path if re.fullmatch(r"[\w./-]+", path) else f"file://{quote(path)}"
    return ("/bin/sh", "-c", _RUN, "riseml", _PROGRAM, path, url, *command)


def make_hold_command(path: str) -> tuple[str, ...]:
    """Return the command that writes the file of the constraints; empty when there is nothing to hold."""
    return ("/bin/sh", "-c", _WRITE, "riseml", _PROGRAM, path)
